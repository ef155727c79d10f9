"""The protocol of one broker: messages in, effects out, no I/O."""
