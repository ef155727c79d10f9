"""Deliveries: what a home broker hands to its clients, once, in order, until they have it."""
