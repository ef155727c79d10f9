"""Deliveries: what a home broker hands to its clients, once, in order, until they have it."""

from distributary.broker.deliveries.deliveries import ClientDeliveries, Deliveries
from distributary.broker.deliveries.finished import Arrival

__all__ = ["Arrival", "ClientDeliveries", "Deliveries"]
