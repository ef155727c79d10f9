"""Rendezvous: registrations and publications of a cell meet at the root of its key."""

from distributary.broker.messages.rendezvous import Registration
from distributary.broker.rendezvous.rendezvous import Rendezvous

__all__ = ["Registration", "Rendezvous"]
