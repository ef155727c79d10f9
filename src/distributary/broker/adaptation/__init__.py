"""Adaptation: trees that streams follow are changed while they are in use."""

from distributary.broker.adaptation.adaptation import Adaptation

__all__ = ["Adaptation"]
