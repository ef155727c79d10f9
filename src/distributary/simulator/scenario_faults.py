"""Faults in scenario files: which of their fields mean something, and which brokers they reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from distributary.broker.broker import Broker
from distributary.content.fields import no_such_name
from distributary.content.tables import read_table
from distributary.errors import BadInput, counted
from distributary.simulator.content_store import FETCH
from distributary.simulator.scenario import FAULT_KINDS, Fault, OverlayTable, WorkloadTable

__all__ = ["read_faults"]

_FAULTS_MAX = 1000
# The fields that mean something only to some kinds.
_KINDS = {
    "until_s": frozenset(FAULT_KINDS) - {"skew"},
    "after": frozenset(("crash", "lost")),
    "message": frozenset(("commit", "handler")),
    "rate": frozenset(
        (
            "drop",
            "duplicate",
            "reorder",
            "conversion",
            "converters",
            "oversize",
            "fetch",
            "content",
            "mix",
        )
    ),
    "extra_ms": frozenset(("reorder", "delay", "mix")),
    "factor": frozenset(("slow", "mix")),
    "seconds": frozenset(("skew", "slew")),
    "kilobytes": frozenset(("full",)),
}
_CHOOSING = ("brokers", "count", "share")
# What happens to a broker, and so needs one that is there.
_AT_BROKERS = frozenset(FAULT_KINDS) - {
    "drop",
    "duplicate",
    "reorder",
    "delay",
    "partition",
    "conversion",
    "oversize",
    "fetch",
    "content",
}
# One by one, brokers join in this part of the time before publishing begins.
_JOINING_SHARE = 0.25


def read_faults(
    entries: object, overlay: OverlayTable, workload: WorkloadTable
) -> tuple[Fault, ...]:
    """Return the faults of a scenario, or raise `BadInput` naming the field."""
    if not isinstance(entries, list):
        raise BadInput("fault", "must be a list of tables", hint="write [[fault]] above each")
    if len(entries) > _FAULTS_MAX:
        raise BadInput("fault", f"has {len(entries):,} entries; at most {_FAULTS_MAX:,} are read")
    faults = []
    for index, entry in enumerate(entries):
        place = f"fault[{index}]"
        fault = read_table(Fault, entry, place)
        _check_fields(fault, entry, place)
        _check_times(fault, overlay, workload, place)
        _check_brokers(fault, entry, overlay, place)
        faults.append(fault)
    _check_left(faults, overlay)
    return tuple(faults)


def _check_fields(fault: Fault, entry: Mapping[str, object], place: str) -> None:
    if fault.kind is None:
        raise BadInput(f"{place}.kind", "is missing")
    for name in entry:
        if fault.kind not in _KINDS.get(name, (fault.kind,)):
            raise BadInput(f"{place}.{name}", f"means nothing for the kind {fault.kind}")
    if fault.kind == "lost" and fault.after is None and "until_s" in entry:
        raise BadInput(f"{place}.until_s", "means nothing for the kind lost without after")
    names = Broker.message_names()
    for name, value in (("after", fault.after), ("message", fault.message)):
        if value is not None and value not in names and (name, value) != ("after", FETCH):
            raise no_such_name(f"{place}.{name}", value, names, "a message between brokers")
    if fault.after is not None and fault.share is not None:
        raise BadInput(f"{place}.share", "means nothing beside after", hint="write count")
    if fault.kind == "mix":
        if fault.until_s is None:
            raise BadInput(
                f"{place}.until_s", "is missing", hint="a mix has a beginning and an end"
            )
        if fault.share is not None:
            raise BadInput(f"{place}.share", "means nothing for the kind mix")


def _check_times(fault: Fault, overlay: OverlayTable, workload: WorkloadTable, place: str) -> None:
    if fault.until_s is not None and fault.until_s < fault.at_s:
        raise BadInput(f"{place}.until_s", f"is before at_s, which is {fault.at_s:g}")
    joined_s = _JOINING_SHARE * workload.begin_s if overlay.join == "one-by-one" else 0.0
    if fault.kind in _AT_BROKERS and fault.at_s < joined_s:
        raise BadInput(
            f"{place}.at_s",
            f"is {fault.at_s:g}, and the last broker joins at {joined_s:g} s",
            hint="brokers join one by one in the first quarter of workload.begin_s",
        )


def _check_brokers(
    fault: Fault, entry: Mapping[str, object], overlay: OverlayTable, place: str
) -> None:
    given = [name for name in _CHOOSING if name in entry]
    if fault.kind != "mix" and len(given) > 1:
        raise BadInput(
            f"{place}.{given[1]}",
            f"is given beside {given[0]}",
            hint="choose brokers by index, by count or by share",
        )
    for k, broker in enumerate(fault.brokers):
        if broker >= overlay.brokers:
            raise BadInput(
                f"{place}.brokers[{k}]",
                f"is {broker}, and the last of them is {overlay.brokers - 1}",
            )
    if fault.share is not None and _reached(fault, overlay) == 0:
        raise BadInput(
            f"{place}.share",
            f"is {fault.share:g}, and of {counted(overlay.brokers, 'broker')} that is none",
        )


def _check_left(faults: Sequence[Fault], overlay: OverlayTable) -> None:
    """See that the clients of lost brokers have somewhere to go, whatever chance decides."""
    named: set[int] = set()
    by_chance = 0
    for index, fault in enumerate(faults):
        if fault.kind in ("lost", "leave"):
            named.update(fault.brokers)
            by_chance += 0 if fault.brokers else _reached(fault, overlay)
            if len(named) + by_chance >= overlay.brokers:
                raise BadInput(
                    f"fault[{index}]",
                    f"leaves none of {counted(overlay.brokers, 'broker')} that is not lost",
                )


def _reached(fault: Fault, overlay: OverlayTable) -> int:
    """Return how many brokers a fault that lets chance choose them concerns."""
    if fault.share is not None:
        return round(fault.share * overlay.brokers)
    return 1 if fault.count is None else fault.count
