"""Fidelity: for how long copies of stream objects were outside of their tolerances.

Nothing changes between two events, so the time outside is a sum of intervals and exact. The
average is that of `fidelity.loss`: over the objects of a server first, and then over servers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean

from distributary.content import Tolerance, Version, outside
from distributary.simulator.checkers.violation import NAMED_MAX, Checker

__all__ = ["Fidelity", "FollowedCopy", "TolerancesCheck"]

_NS_PER_SECOND = 1e9

_Copy = tuple[str, tuple[str, str]]
"""A server, and the object that it has a copy of."""


@dataclass(eq=False)
class FollowedCopy:
    """One follower of one object.

    Attributes
    ----------
    server
        With whose objects it is averaged.
    copy
        The copy that it has; None until the first one, from when on it counts.
    outside_since_ns
        Since when its copy is outside; None when it is not.
    """

    follower: str
    server: str
    object: tuple[str, str]
    tolerance: Tolerance
    copy: Version | None = None
    begun_ns: int | None = None
    outside_since_ns: int | None = None


class Fidelity:
    """Follows sources and copies, and adds up the time for which they are apart.

    Parameters
    ----------
    window_ns
        The width of the windows of the series.

    Attributes
    ----------
    intervals
        Every interval outside: (follower, object, from, until).
    """

    def __init__(self, window_ns: int) -> None:
        self._window_ns = window_ns
        self._versions: dict[tuple[str, str], dict[int, Mapping[str, Version]]] = {}
        self._current: dict[tuple[str, str], int] = {}
        self._of_object: dict[tuple[str, str], list[FollowedCopy]] = {}
        self._of_follower: dict[str, dict[tuple[str, str], list[FollowedCopy]]] = {}
        self._outside: dict[int, dict[_Copy, int]] = {}
        self._counted: list[tuple[_Copy, int, int]] = []
        self.intervals: list[tuple[str, tuple[str, str], int, int]] = []

    def follow(
        self,
        follower: str,
        thing: tuple[str, str],
        tolerance: Tolerance,
        *,
        server: str | None = None,
    ) -> FollowedCopy:
        """Count a follower of an object, from its first copy on.

        Parameters
        ----------
        server
            Whose follower it is, unless it is a server of its own. Followers of one server
            are averaged before servers are; those that it has of one object, one after the
            other or at once, are the same copy.
        """
        following = FollowedCopy(follower, server or follower, thing, tolerance)
        self._of_object.setdefault(thing, []).append(following)
        self._of_follower.setdefault(follower, {}).setdefault(thing, []).append(following)
        return following

    def unfollow(self, follower: str, now_ns: int) -> None:
        """Count a follower no more."""
        for thing, followings in self._of_follower.pop(follower, {}).items():
            for following in followings:
                self._of_object[thing].remove(following)
                self._close(following, now_ns)

    def changed(
        self, thing: tuple[str, str], sequence: int, versions: Mapping[str, Version], now_ns: int
    ) -> None:
        """An object changes at its source; versions are by the pointer of their value."""
        self._versions.setdefault(thing, {})[sequence] = versions
        self._current[thing] = sequence
        for following in self._of_object.get(thing, ()):
            if following.begun_ns is not None:
                self._look(following, now_ns)

    def copied(self, follower: str, thing: tuple[str, str], sequence: int, now_ns: int) -> None:
        """A follower gets a copy of an object."""
        for following in self._of_follower.get(follower, {}).get(thing, ()):
            following.copy = self._versions[thing][sequence][following.tolerance.value]
            if following.begun_ns is None:
                following.begun_ns = now_ns
            self._look(following, now_ns)

    def finish(self, now_ns: int) -> None:
        """Close what is still open."""
        for follower in sorted(self._of_follower):
            self.unfollow(follower, now_ns)

    def without_copy(self) -> list[FollowedCopy]:
        """Return the followers that have no copy at all."""
        return [following for following in self._all() if following.copy is None]

    def outside_now(self) -> list[FollowedCopy]:
        """Return the followers whose copies are outside."""
        return [f for f in self._all() if f.outside_since_ns is not None]

    def _all(self) -> Iterator[FollowedCopy]:
        for things in self._of_follower.values():
            for followings in things.values():
                yield from followings

    def series(self) -> list[tuple[float, float]]:
        """Return (time in seconds, average loss) for each window that counts."""
        width = self._window_ns
        begun = min((since_ns for _, since_ns, _ in self._counted), default=0)
        ended = max((until_ns for _, _, until_ns in self._counted), default=0)
        series = []
        for window in range(begun // width, -(-ended // width)):
            since_ns = window * width
            loss = self._loss(since_ns, since_ns + width, self._outside.get(window, {}))
            if loss is not None:
                series.append((since_ns / _NS_PER_SECOND, loss))
        return series

    def average(self) -> float:
        """Return the average loss over the whole run."""
        outside: dict[_Copy, int] = {}
        for copies in self._outside.values():
            for copy, outside_ns in copies.items():
                outside[copy] = outside.get(copy, 0) + outside_ns
        ended = max((until_ns for _, _, until_ns in self._counted), default=0)
        return self._loss(0, ended, outside) or 0.0

    def _loss(self, since_ns: int, until_ns: int, outside: Mapping[_Copy, int]) -> float | None:
        """Return the average loss in a stretch of time; None when nothing counts in it."""
        counted: dict[_Copy, int] = {}
        for copy, begun_ns, ended_ns in self._counted:
            within_ns = min(ended_ns, until_ns) - max(begun_ns, since_ns)
            if within_ns > 0:
                counted[copy] = counted.get(copy, 0) + within_ns
        servers: dict[str, list[float]] = {}
        for copy, within_ns in counted.items():
            servers.setdefault(copy[0], []).append(outside.get(copy, 0) / within_ns)
        return fmean(fmean(shares) for shares in servers.values()) if servers else None

    def _look(self, following: FollowedCopy, now_ns: int) -> None:
        """See whether a copy is outside now."""
        version = self._versions[following.object][self._current[following.object]]
        pointer = following.tolerance.value
        is_outside = outside(following.tolerance, version[pointer], following.copy)
        if is_outside and following.outside_since_ns is None:
            following.outside_since_ns = now_ns
        elif not is_outside and following.outside_since_ns is not None:
            self._count_outside(following, now_ns)

    def _count_outside(self, following: FollowedCopy, now_ns: int) -> None:
        since_ns = following.outside_since_ns
        assert since_ns is not None
        following.outside_since_ns = None
        if now_ns > since_ns:
            self.intervals.append((following.follower, following.object, since_ns, now_ns))
            self._spread(following, since_ns, now_ns)

    def _close(self, following: FollowedCopy, now_ns: int) -> None:
        if following.begun_ns is not None:
            if following.outside_since_ns is not None:
                self._count_outside(following, now_ns)
            copy = (following.server, following.object)
            self._counted.append((copy, following.begun_ns, now_ns))

    def _spread(self, following: FollowedCopy, since_ns: int, until_ns: int) -> None:
        """Add an interval outside to the windows that it lies in."""
        copy, width = (following.server, following.object), self._window_ns
        while since_ns < until_ns:
            window = since_ns // width
            end_ns = min(until_ns, (window + 1) * width)
            copies = self._outside.setdefault(window, {})
            copies[copy] = copies.get(copy, 0) + end_ns - since_ns
            since_ns = end_ns


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
        for following in self._copies.without_copy()[:NAMED_MAX]:
            self.complain(now_ns, f"{following.follower} never got a copy of {following.object}")
        for following in self._copies.outside_now()[:NAMED_MAX]:
            since = following.outside_since_ns
            assert since is not None
            self.complain(
                now_ns,
                f"{following.follower} is outside its tolerance of {following.object} "
                f"since {since / 1e9:.3f} s, and stays so",
            )
        if self._without_delay:
            for follower, thing, since_ns, until_ns in self._copies.intervals[:NAMED_MAX]:
                self.complain(
                    since_ns,
                    f"{follower} was outside its tolerance of {thing} for "
                    f"{(until_ns - since_ns) / 1e9:.6f} s, though nothing takes time",
                )
