"""Rumours: news that a broker still has to pass on."""

from __future__ import annotations

from heapq import nsmallest

from distributary.broker.messages.membership import News

__all__ = ["Rumours"]

# As many as fit in a datagram beside everything else.
_NEWS_PER_PING = 16


class _Rumour:
    __slots__ = ("left", "news")

    def __init__(self, news: News, left: int) -> None:
        self.news = news
        self.left = left


class Rumours:
    """The latest news of each broker, as long as they have to be passed on.

    News are passed on twice over: at once, to a few others, which reaches most of an overlay
    within a few delays; and with pings and their answers, some logarithm of times, which
    reaches those that were left out.
    """

    def __init__(self) -> None:
        self._rumours: dict[str, _Rumour] = {}
        self._fresh: dict[str, News] = {}

    def __bool__(self) -> bool:
        return bool(self._rumours)

    @property
    def has_fresh(self) -> bool:
        """Whether there are news that have not been passed on at all."""
        return bool(self._fresh)

    def add(self, news: News, *, member_count: int) -> None:
        """Pass on news, in place of older ones of the same broker."""
        self._rumours[news.identity] = _Rumour(news, 3 * (member_count + 1).bit_length())
        self._fresh[news.identity] = news

    def take(self) -> tuple[News, ...]:
        """Return what goes with the next ping or answer: what has gone out least often."""
        if not self._rumours:
            return ()
        chosen = nsmallest(
            _NEWS_PER_PING,
            self._rumours.values(),
            key=lambda rumour: (-rumour.left, rumour.news.identity),
        )
        for rumour in chosen:
            rumour.left -= 1
            if not rumour.left:
                del self._rumours[rumour.news.identity]
        return tuple(rumour.news for rumour in chosen)

    def take_fresh(self) -> tuple[News, ...]:
        """Return the news that have not been passed on at all, which then have been."""
        fresh = tuple(news for _, news in sorted(self._fresh.items()))
        self._fresh.clear()
        return fresh
