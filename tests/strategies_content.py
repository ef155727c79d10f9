"""Hypothesis strategies for events, streams and tolerances, hostile ones among them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from distributary.content.divergence import DIVERGENCES, Version
from distributary.content.publication import Publication
from distributary.content.tolerance import EffectiveTolerance, Tolerance

KINDS = sorted(DIVERGENCES)

# Amounts that are equal, nested, an ulp apart, and far apart.
AMOUNTS = st.one_of(
    st.sampled_from([1.0, 0.1, 0.2, 0.3, 0.25, 0.5, 2.0, 3.0, 1e-9, 1e-100, 1e15]),
    st.sampled_from([math.nextafter(1.0, 0.0), math.nextafter(1.0, 2.0), 0.1 + 0.2]),
    st.floats(1e-3, 10.0),
    st.floats(1e-100, 1e15),
)


@st.composite
def walks(draw: st.DrawFn, *, size: int) -> list[float]:
    """Draw values as streams have them: drifts, spikes, alternation, jumps of magnitude."""
    manner = draw(st.sampled_from(["drift", "spike", "alternate", "free", "extreme", "ratio"]))
    start = draw(st.sampled_from([0.0, 1.0, -1.0, 100.0, 1e-3, 1e12]))
    step = draw(AMOUNTS) * draw(st.sampled_from([0.01, 0.1, 0.5, 0.999, 1.0]))
    if manner == "drift":
        return [start + n * step for n in range(size)]
    if manner == "spike":
        high = draw(st.integers(0, size - 1))
        return [start + (1000.0 * step if n == high else 0.0) for n in range(size)]
    if manner == "alternate":
        return [start + (step if n % 2 else -step) for n in range(size)]
    if manner == "ratio":
        return [start * (1.0 + 0.1 * step) ** (n % 9) * (-1.0) ** (n // 9) for n in range(size)]
    numbers = st.sampled_from(
        [0.0, -0.0, 5e-324, 2.2e-308, 1e-300, 1.0, -1.0, 1e300, 1.7e308, -1.7e308]
    )
    if manner == "free":
        numbers = st.floats(-10.0, 10.0) | st.floats(allow_nan=False, allow_infinity=False)
    return draw(st.lists(numbers, min_size=size, max_size=size))


TEXTS = st.text("ab€", max_size=6)


@st.composite
def streams(draw: st.DrawFn, *, versions_max: int = 24) -> list[Version]:
    """Draw the versions of one object, in order; a value may be a number, a text or missing."""
    size = draw(st.integers(1, versions_max))
    mixed = draw(st.integers(0, 3))
    values: list[float | str | None] = [*draw(walks(size=size))]
    if mixed == 0:
        others = st.sampled_from(values) | TEXTS | st.none()
        values = draw(st.lists(others, min_size=size, max_size=size))
    elif mixed == 1:
        values = [*draw(st.lists(TEXTS, min_size=size, max_size=size))]
    change_steps = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    time_steps = draw(
        st.lists(st.sampled_from([0, 1, 10**8, 10**9, 1_234_567_891]), min_size=size, max_size=size)
    )
    versions = []
    change, time_ns = 0, draw(st.sampled_from([0, 1_769_853_600_000_000_000]))
    for value, more, later in zip(values, change_steps, time_steps, strict=True):
        change, time_ns = change + more, time_ns + later
        versions.append(Version(value, change, time_ns))
    return versions


def effective(*, kinds_min: int = 0) -> st.SearchStrategy[EffectiveTolerance]:
    """Draw an effective tolerance of some kinds."""
    return st.dictionaries(st.sampled_from(KINDS), AMOUNTS, min_size=kinds_min).map(
        EffectiveTolerance
    )


@dataclass(frozen=True)
class BrokerTree:
    """Brokers with the tolerances of their clients; broker 0 is the source's.

    Attributes
    ----------
    parents
        Parent of each broker, -1 for the first.
    clients
        The tolerances of each broker's own clients.
    """

    parents: tuple[int, ...]
    clients: tuple[tuple[Tolerance, ...], ...]

    def effective(self) -> list[EffectiveTolerance]:
        """Return the effective tolerance of every broker."""
        kept = [EffectiveTolerance.of(own) for own in self.clients]
        for broker in range(len(self.parents) - 1, 0, -1):
            parent = self.parents[broker]
            kept[parent] = kept[parent].merged([kept[broker]])
        return kept


@st.composite
def broker_trees(
    draw: st.DrawFn, *, brokers_max: int = 6, kinds: Sequence[str] = KINDS
) -> BrokerTree:
    """Draw a tree of any shape, chains among them, with any mix of tolerances."""
    count = draw(st.integers(2, brokers_max))
    chain = draw(st.booleans())
    few = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=3, unique=True))
    amounts = draw(st.sampled_from([AMOUNTS, st.floats(0.01, 0.9)]))
    asked = st.lists(
        st.builds(Tolerance, st.just("/v"), st.sampled_from(few), amounts), min_size=1, max_size=2
    ).map(tuple)
    parents = [v - 1 if chain else draw(st.integers(0, v - 1)) for v in range(1, count)]
    return BrokerTree((-1, *parents), tuple(draw(asked) for _ in range(count)))


JSON_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | JSON_TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(JSON_TEXTS, inner, max_size=4),
    max_leaves=12,
)
ATTRIBUTE_TEXTS = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Cn"]), min_size=1, max_size=12
)
EXTENSIONS = st.dictionaries(
    st.sampled_from(["priority", "region", "urgent", "sequence", "a1"]),
    ATTRIBUTE_TEXTS | st.integers(-(2**31), 2**31 - 1) | st.booleans(),
    max_size=3,
)


@st.composite
def event_documents(draw: st.DrawFn) -> dict[str, object]:
    """Draw an event in the CloudEvents JSON format, with data of any kind."""
    document: dict[str, object] = {
        "specversion": "1.0",
        "id": draw(ATTRIBUTE_TEXTS),
        "source": draw(st.sampled_from(["/a", "urn:x:1", "https://example.com/a?b=%20#c", "a"])),
        "type": draw(ATTRIBUTE_TEXTS),
        **draw(EXTENSIONS),
    }
    if draw(st.booleans()):
        document["time"] = draw(
            st.sampled_from(
                [
                    "2026-01-31T12:00:00Z",
                    "1999-12-31t23:59:59.999999999-11:30",
                    "2026-01-31T12:00:00.10+02:00",
                ]
            )
        )
    kind = draw(st.sampled_from(["none", "json", "implied", "text", "bytes", "untyped"]))
    if kind in ("json", "implied"):
        document["data"] = draw(JSON_VALUES)
    if kind == "json":
        document["datacontenttype"] = draw(
            st.sampled_from(["application/json", "text/vnd.x+JSON; charset=utf-8"])
        )
    if kind == "text":
        document["datacontenttype"] = draw(st.sampled_from(["text/plain", "application/xml"]))
        document["data"] = draw(JSON_TEXTS.filter(bool))
    if kind == "bytes":
        document["datacontenttype"] = draw(st.sampled_from(["image/png", "text/plain"]))
    if kind in ("bytes", "untyped"):
        document["data_base64"] = draw(st.sampled_from(["AAH/", "aGk=", "/w=="]))
    return document


def publications() -> st.SearchStrategy[Publication]:
    """Draw a publication."""
    return event_documents().map(Publication.parse)
