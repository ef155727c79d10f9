"""Small files of three kinds: quotes, sensor readings and events of a shop."""
