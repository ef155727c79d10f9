"""Subscriptions: what clients of a broker ask for, registered at rendezvous brokers."""

from distributary.broker.subscriptions.local_subscription import LocalSubscription
from distributary.broker.subscriptions.subscriptions import ClientSubscriptions, Subscriptions

__all__ = ["ClientSubscriptions", "LocalSubscription", "Subscriptions"]
