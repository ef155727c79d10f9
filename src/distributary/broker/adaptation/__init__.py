"""Adaptation: trees that streams follow are changed while they are in use."""
