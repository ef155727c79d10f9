"""Membership: who is there, and who is next on the way to whom."""

from distributary.broker.membership.change import MembersChanged
from distributary.broker.membership.membership import Membership
from distributary.broker.messages.membership import Status

__all__ = ["MembersChanged", "Membership", "Status"]
