"""From DataFrame to DataFrame, for batch and stream alike; no reading, no writing."""
