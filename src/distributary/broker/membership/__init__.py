"""Membership: who is there, and who is next on the way to whom."""
