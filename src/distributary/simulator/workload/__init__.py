"""What clients do in a run: subscribe, publish, follow streams, come and go."""
