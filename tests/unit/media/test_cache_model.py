"""The cache beside a dictionary: whatever happens in whatever order, they agree."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from distributary.content.media_type import MediaType
from distributary.media.cache import Cache
from distributary.media.cache_key import CacheKey
from distributary.media.failure import ConversionFailed, FailureKind
from distributary.media.limits import Limits
from distributary.media.result import ConversionResult

SOURCE = MediaType.parse("application/pdf")
TARGET = MediaType.parse("image/png;width=320")
KEYS = [CacheKey.of(b"%d" % number, SOURCE, TARGET, "1") for number in range(12)]
BLOCK = 4096

keys = st.integers(0, len(KEYS) - 1)
# Limits in two respects, so that some are neither larger nor smaller than others.
some_limits = st.builds(
    Limits, seconds=st.sampled_from([1.0, 2.0]), output_bytes=st.sampled_from([1000, 10_000])
)


class CacheBesideDictionary(RuleBasedStateMachine):
    """Entries in the order of their use, the least recent first."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.directory = Path(self.folder.name) / "kept"
        self.twin: dict[int, ConversionResult | ConversionFailed] = {}

    @initialize(blocks=st.integers(1, 20))
    def open_first(self, blocks: int) -> None:
        self.bytes_max = blocks * BLOCK
        self.open()

    @rule()
    def open(self) -> None:
        self.cache = Cache(self.directory, bytes_max=self.bytes_max)

    @rule(number=keys, blocks=st.integers(1, 4), fill=st.binary(max_size=3))
    def keep(self, number: int, blocks: int, fill: bytes) -> None:
        content = fill + bytes((blocks - 1) * BLOCK)
        result = ConversionResult(content, media_type=TARGET, seconds=0.5, cached=False)
        self.cache.put(KEYS[number], result)
        self.kept(number, replace(result, cached=True))

    @rule(number=keys, kind=st.sampled_from(["damaged", "time", "killed"]), limits=some_limits)
    def fail(self, number: int, kind: FailureKind, limits: Limits) -> None:
        result = ConversionFailed(SOURCE, TARGET, kind=kind, reason="so", limits=limits)
        self.cache.put(KEYS[number], result)
        if kind != "killed" and not isinstance(self.twin.get(number), ConversionResult):
            self.kept(number, result)

    @rule(number=keys, limits=st.none() | some_limits)
    def look(self, number: int, limits: Limits | None) -> None:
        found = self.cache.get(KEYS[number], limits)
        expected = self.twin.get(number)
        if limits is not None and expected is not None and not answers(expected, limits):
            expected = None
        assert described(found) == described(expected)
        if expected is not None:
            self.twin[number] = self.twin.pop(number)

    @rule(number=keys, place=st.integers(0, 10**6))
    def damage(self, number: int, place: int) -> None:
        path = self.path(number)
        if path.exists():
            content = bytearray(path.read_bytes())
            content[place % len(content)] ^= 0x10
            path.write_bytes(content)
            assert self.cache.get(KEYS[number]) is None
            del self.twin[number]

    @rule(number=keys)
    def remove(self, number: int) -> None:
        self.path(number).unlink(missing_ok=True)
        self.twin.pop(number, None)

    @invariant()
    def the_same_files_are_there_and_within_the_limit(self) -> None:
        assert [self.path(number).exists() for number in range(len(KEYS))] == [
            number in self.twin for number in range(len(KEYS))
        ]
        taken = sum(room(result) for result in self.twin.values())
        assert not self.twin or taken <= self.bytes_max

    def kept(self, number: int, result: ConversionResult | ConversionFailed) -> None:
        """Do to the twin what keeping a result does to the cache."""
        if room(result) > self.bytes_max:
            return
        self.twin.pop(number, None)
        self.twin[number] = result
        if sum(map(room, self.twin.values())) > self.bytes_max:
            while len(self.twin) > 1 and (
                sum(map(room, self.twin.values())) > self.bytes_max * 7 / 8
            ):
                del self.twin[next(iter(self.twin))]

    def path(self, number: int) -> Path:
        digest = KEYS[number].digest
        return self.directory / digest[:2] / digest[2:]

    def teardown(self) -> None:
        self.folder.cleanup()


def room(result: ConversionResult | ConversionFailed) -> int:
    """Return whole blocks; the header takes the rest of the last."""
    content = result.content if isinstance(result, ConversionResult) else b""
    return (len(content) // BLOCK + 1) * BLOCK


def answers(result: ConversionResult | ConversionFailed, limits: Limits) -> bool:
    if isinstance(result, ConversionResult):
        return len(result.content) <= limits.output_bytes
    return (
        limits.seconds <= result.limits.seconds
        and limits.output_bytes <= result.limits.output_bytes
    )


def described(result: ConversionResult | ConversionFailed | None) -> object:
    if isinstance(result, ConversionFailed):
        return (result.kind, result.reason, result.limits, str(result))
    return result


TestCacheBesideDictionary = CacheBesideDictionary.TestCase
TestCacheBesideDictionary.settings = settings(max_examples=30, stateful_step_count=40)
