"""Relays: what every hop does with content on its way."""

from distributary.broker.relays.relays import Relays

__all__ = ["Relays"]
