"""What one broker was told, told again to another one like it, and timed as a whole.

A broker does the same whenever it is told the same at the same times. So its work is measured
without the other brokers, without the simulator, and without reading a clock at every turn, which
on some machines takes as long as the turn.
"""

from __future__ import annotations

import gc
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from types import FrameType
from typing import Any

from distributary.broker.broker import Broker
from distributary.broker.host import Effect
from distributary.broker.planning import publication_of
from distributary.broker.settings import Settings

__all__ = ["Recording", "Replayed", "recorded", "replay"]

_METHODS = ("receive", "wake", "serve", "start")


@dataclass
class Recording:
    """All that a broker was told since it began.

    Attributes
    ----------
    calls
        The method, what it was given, and when.
    mark
        What comes from here on is measured.
    """

    identity: str
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)
    mark: int = 0
    settings: Settings | None = None
    rng_state: Any = None

    def from_here(self) -> None:
        """Measure what comes from here on."""
        self.mark = len(self.calls)


@contextmanager
def recorded(identity: str) -> Iterator[Recording]:
    """Write down what the broker of a name is told, from its first turn on."""
    recording = Recording(identity)
    before = {name: getattr(Broker, name) for name in _METHODS}

    def wrap(name: str, method: Callable[..., list[Effect]]) -> Callable[..., list[Effect]]:
        def turn(broker: Broker, *args: Any, **kwargs: Any) -> list[Effect]:
            if broker.identity == identity:
                if not recording.calls:
                    recording.settings = broker.core.settings
                    recording.rng_state = broker.core.rng.getstate()
                recording.calls.append((name, args, kwargs))
            return method(broker, *args, **kwargs)

        return turn

    for name, method in before.items():
        setattr(Broker, name, wrap(name, method))
    try:
        yield recording
    finally:
        for name, method in before.items():
            setattr(Broker, name, method)


@dataclass(frozen=True)
class Replayed:
    """What a broker took for what is measured.

    Attributes
    ----------
    seconds
        Of the processor; for each portion the least of all repeats.
    loops
        The same for all portions, in loops of a fixed piece of work that was done before and
        after: times on two machines, or on one that others use too, can be compared by it. The
        median of all repeats.
    calls
        Of functions, in the interpreter and in what it calls.
    parsed
        How many events it read.
    """

    seconds: tuple[float, ...]
    loops: float
    calls: int
    parsed: int


def replay(recording: Recording, *, portions: int = 1, repeats: int = 3) -> Replayed:
    """Tell it all again, and measure from its mark on, in so many portions of equal length."""
    best = [float("inf")] * portions
    loops: list[float] = []
    parsed = 0
    for _ in range(repeats):
        broker = _warm(recording)
        loop_s = _loop_s()
        spent_s = 0.0
        parsed_before = publication_of.misses()
        for at, portion in enumerate(_portions(recording, portions)):
            began = time.process_time()
            _tell(broker, portion)
            portion_s = time.process_time() - began
            best[at] = min(best[at], portion_s)
            spent_s += portion_s
        loops.append(2.0 * spent_s / (loop_s + _loop_s()))
        parsed = publication_of.misses() - parsed_before
        gc.enable()
    return Replayed(tuple(best), median(loops), _count_calls(recording), parsed)


def _portions(
    recording: Recording, count: int
) -> Iterator[list[tuple[str, tuple[Any, ...], dict[str, Any]]]]:
    """Cut what is measured into parts that take as long by the broker's own clock."""
    calls = recording.calls[recording.mark :]
    began, end = calls[0][2]["now_ns"], calls[-1][2]["now_ns"]
    length = (end - began) // count + 1
    parts: list[list[tuple[str, tuple[Any, ...], dict[str, Any]]]] = [[] for _ in range(count)]
    for call in calls:
        parts[(call[2]["now_ns"] - began) // length].append(call)
    yield from parts


def _warm(recording: Recording) -> Broker:
    """Return a broker that has been told everything up to the mark, and collect no garbage."""
    assert recording.settings is not None
    rng = random.Random()
    rng.setstate(recording.rng_state)
    broker = Broker(recording.identity, recording.settings, rng=rng)
    # Other brokers of this process have read the same events; in one of its own nobody has.
    publication_of.clear()
    _tell(broker, recording.calls[: recording.mark])
    gc.collect()
    gc.disable()
    return broker


def _tell(broker: Broker, calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]]) -> None:
    for name, args, kwargs in calls:
        getattr(broker, name)(*args, **kwargs)


def _count_calls(recording: Recording) -> int:
    broker = _warm(recording)
    count = 0

    def profiled(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        if event in ("call", "c_call"):
            count += 1

    sys.setprofile(profiled)
    try:
        _tell(broker, recording.calls[recording.mark :])
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


def _loop_s(repeats: int = 3) -> float:
    """Return what this machine takes for work of the same kind: small objects, texts, tables."""
    best = float("inf")
    for _ in range(repeats):
        began = time.process_time()
        table: dict[tuple[str, int], list[tuple[int, str]]] = {}
        for n in range(20_000):
            key = (f"{n % 997:04x}", n % 7)
            table.setdefault(key, []).append((n, key[0]))
        sorted((len(values), key) for key, values in table.items())
        best = min(best, time.process_time() - began)
    return best
