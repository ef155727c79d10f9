"""The client library: publish and subscribe by way of a gateway."""
