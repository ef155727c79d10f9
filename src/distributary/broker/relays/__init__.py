"""Relays: what every hop does with content on its way."""
