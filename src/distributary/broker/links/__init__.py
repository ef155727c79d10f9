"""Links: messages between brokers that arrive, and the way to the root of a key."""
