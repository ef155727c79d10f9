"""Dissemination: what the root of a cell does for every item, from its offer to the last home."""

from distributary.broker.dissemination.dissemination import Dissemination

__all__ = ["Dissemination"]
