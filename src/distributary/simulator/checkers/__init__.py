"""Checkers: they watch a run from outside and say what it got wrong."""
