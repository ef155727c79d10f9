"""Subscriptions: what clients of a broker ask for, registered at rendezvous brokers."""
