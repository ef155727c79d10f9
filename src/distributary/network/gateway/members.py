"""Members: which brokers there are and answer, as a gateway sees it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from distributary.network.client import ClientGate
from distributary.network.gateway.problems import Problem
from distributary.network.requests import GetStatus, StatusTold
from distributary.network.transfers import TransferFailed, ask

__all__ = ["OverlayMembers"]

_PERIOD_S = 2.0
_ANSWER_S = 2.0


class OverlayMembers:
    """The brokers of an overlay.

    Attributes
    ----------
    status
        How each broker is, as it said last; None of those who did not answer.
    """

    def __init__(self, gate: ClientGate, brokers: Sequence[str]) -> None:
        self.status: dict[str, dict[str, Any] | None] = dict.fromkeys(brokers)
        self._gate = gate
        self._looked = asyncio.Event()
        self._began_at = asyncio.get_running_loop().time()
        self._answered_at: dict[str, float] = {}
        self._task = asyncio.ensure_future(self._look())

    @property
    def alive(self) -> list[str]:
        """Those who have answered."""
        return [name for name, status in self.status.items() if status is not None]

    async def wait(self) -> None:
        """Wait until somebody has answered."""
        await self._looked.wait()

    def choose(self) -> str:
        """Return a broker to be at home with, or raise a problem if nobody answers."""
        if not self.alive:
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, "no broker answers", retry_s=1.0)
        return random.choice(self.alive)

    def is_away(self, broker: str, seconds: float = 0.0) -> bool:
        """Whether a broker has not answered lately, or for so long."""
        if self.status.get(broker) is not None:
            return False
        since = self._answered_at.get(broker, self._began_at)
        return asyncio.get_running_loop().time() - since >= seconds

    async def ask_all(self) -> dict[str, dict[str, Any] | None]:
        """Return how everybody is now."""
        names = list(self.status)
        answers = await asyncio.gather(*(self._ask(name) for name in names))
        self.status.update(zip(names, answers, strict=True))
        self._answered_at.update(dict.fromkeys(self.alive, asyncio.get_running_loop().time()))
        if self.alive:
            self._looked.set()
        return dict(self.status)

    async def close(self) -> None:
        """Look no more."""
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _look(self) -> None:
        while True:
            if self._gate.connection.connected:
                await self.ask_all()
            await asyncio.sleep(_PERIOD_S if self._looked.is_set() else _PERIOD_S / 20)

    async def _ask(self, name: str) -> dict[str, Any] | None:
        subject = self._gate.subjects.to_host(name, self._gate.name)
        try:
            async with asyncio.timeout(_ANSWER_S):
                answer = await ask(self._gate.connection, subject, GetStatus())
        except (TransferFailed, TimeoutError):
            return None
        return answer.status if isinstance(answer, StatusTold) else None
