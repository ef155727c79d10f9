"""Tolerances: without delay no copy is ever outside, and with delay none stays outside."""

from __future__ import annotations

from distributary.simulator.checkers.fidelity import Fidelity
from distributary.simulator.checkers.violation import Checker

__all__ = ["TolerancesCheck"]

_NAMED_MAX = 10


class TolerancesCheck(Checker):
    """Checks the copies of followers.

    Parameters
    ----------
    without_delay
        Whether nothing takes time in this run, so that no copy may ever be outside.
    """

    name = "tolerances"

    def __init__(self, copies: Fidelity, *, without_delay: bool) -> None:
        super().__init__()
        self._copies = copies
        self._without_delay = without_delay

    def finish(self, now_ns: int) -> None:
        """Look at every copy as it is, and at every time that one was outside."""
        for following in self._copies.without_copy()[:_NAMED_MAX]:
            self.complain(now_ns, f"{following.follower} never got a copy of {following.object}")
        for following in self._copies.outside_now()[:_NAMED_MAX]:
            since = following.outside_since_ns
            assert since is not None
            self.complain(
                now_ns,
                f"{following.follower} is outside its tolerance of {following.object} "
                f"since {since / 1e9:.3f} s, and stays so",
            )
        if self._without_delay:
            for follower, thing, since_ns, until_ns in self._copies.intervals[:_NAMED_MAX]:
                self.complain(
                    since_ns,
                    f"{follower} was outside its tolerance of {thing} for "
                    f"{(until_ns - since_ns) / 1e9:.6f} s, though nothing takes time",
                )
