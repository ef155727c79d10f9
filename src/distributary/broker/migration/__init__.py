"""Moving clients to brokers at which they cost less."""
