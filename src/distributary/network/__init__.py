"""Brokers on NATS: one process each, with a journal, a content store and a supervisor."""
