"""Dissemination: what the root of a cell does for every item, from its offer to the last home."""
