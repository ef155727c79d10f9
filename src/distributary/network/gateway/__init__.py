"""The gateway: HTTP and WebSocket for those who do not speak NATS."""
