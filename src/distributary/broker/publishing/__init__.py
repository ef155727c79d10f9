"""Publishing: what a home broker does with what its clients publish."""
