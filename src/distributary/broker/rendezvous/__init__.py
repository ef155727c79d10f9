"""Rendezvous: registrations and publications of a cell meet at the root of its key."""
