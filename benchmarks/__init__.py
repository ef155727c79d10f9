"""Measurements of speed and quality: `python -m benchmarks --help`."""
