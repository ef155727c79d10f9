"""Faults in scenario files: fields that mean nothing, and brokers that are not there."""

from __future__ import annotations

import subprocess
import sys

import pytest

from distributary.errors import BadInput
from distributary.simulator.scenario import OverlayTable, WorkloadTable
from distributary.simulator.scenario_faults import read_faults

FOUR = OverlayTable(brokers=4)
ONE_BY_ONE = OverlayTable(brokers=4, join="one-by-one")
WORKLOAD = WorkloadTable(begin_s=8.0)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"kind": "crash", "rate": 0.5}, r"rate: means nothing for the kind crash"),
        ({"kind": "lost", "until_s": 9}, r"until_s: means nothing for the kind lost"),
        ({"kind": "drop", "seconds": 1}, r"seconds: means nothing for the kind drop"),
        ({"kind": "mix", "until_s": 9, "share": 0.5}, r"share: means nothing for the kind mix"),
        ({"kind": "slow", "factor": 0}, r"factor: is 0, and must be from 1e-06 to 1,000,000"),
        ({"kind": "crash", "count": 0}, r"count: is 0, and must be from 1"),
        ({"kind": "crash", "count": 1, "share": 0.5}, r"share: is given beside count; hint"),
        ({"kind": "crash", "brokers": [1], "count": 1}, r"count: is given beside brokers; hint"),
        ({"kind": "lost", "after": "Taken", "share": 0.5}, r"share: means nothing beside after"),
        ({"kind": "slow", "after": "Taken"}, r"after: means nothing for the kind slow"),
        ({"kind": "crash", "after": "Registred"}, r"after: 'Registred' is not a message .*hint"),
        (
            {"kind": "crash", "after": "EntryRecord"},
            r"after: 'EntryRecord' is not a message",
        ),
        ({"kind": "torn", "message": "Offer"}, r"message: means nothing for the kind torn"),
        ({"kind": "commit", "message": "Offr"}, r"message: 'Offr' is not a message .*hint"),
        ({"kind": "handler", "message": "Publish"}, r"message: 'Publish' is not a message"),
        ({"kind": "handler", "after": "Offer"}, r"after: means nothing for the kind handler"),
        ({"kind": "drop", "share": 0.1}, r"share: is 0.1, and of 4 brokers that is none"),
    ],
)
def test_a_field_that_means_nothing_is_named(entry: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=rf"^fault\[1\]\.{message}"):
        read_faults([{"kind": "drop"}, entry], FOUR, WORKLOAD)


@pytest.mark.parametrize(
    "entries",
    [
        [{"kind": "lost", "share": 1.0}],
        [{"kind": "lost", "brokers": [0, 1, 2, 3]}],
        [{"kind": "lost", "count": 9}],
        [{"kind": "lost", "count": 2}, {"kind": "crash"}, {"kind": "lost", "brokers": [0, 1]}],
        [{"kind": "lost", "count": 2}, {"kind": "leave", "count": 2}],
        [{"kind": "lost", "count": 4, "after": "Registered"}],
    ],
)
def test_some_broker_must_be_left(entries: list[object]) -> None:
    with pytest.raises(BadInput, match=r"^fault\[\d\]: leaves none of 4 brokers"):
        read_faults(entries, FOUR, WORKLOAD)


@pytest.mark.parametrize(
    "kind", ["crash", "torn", "commit", "handler", "lost", "leave", "slow", "skew"]
)
def test_a_broker_that_has_not_joined_cannot_fail(kind: str) -> None:
    early = {"kind": kind, "brokers": [3], "at_s": 1.9}
    with pytest.raises(BadInput, match=r"at_s: is 1.9, and the last broker joins at 2 s; hint"):
        read_faults([early], ONE_BY_ONE, WORKLOAD)
    assert len(read_faults([early], FOUR, WORKLOAD)) == 1
    assert len(read_faults([{**early, "at_s": 2}], ONE_BY_ONE, WORKLOAD)) == 1


def test_what_means_something_is_taken() -> None:
    entries: list[object] = [
        {"kind": "mix", "count": 3, "rate": 0.2, "brokers": [1, 2], "at_s": 1, "until_s": 9},
        {"kind": "reorder", "rate": 0.2, "extra_ms": 5, "until_s": 9},
        {"kind": "skew", "seconds": 1, "share": 0.5},
        {"kind": "lost", "count": 2, "at_s": 5},
        {"kind": "lost", "after": "Registered", "at_s": 5, "until_s": 9},
    ]
    found = read_faults(entries, FOUR, WORKLOAD)
    assert [fault.kind for fault in found] == ["mix", "reorder", "skew", "lost", "lost"]
    assert found[0].brokers == (1, 2)


@pytest.mark.parametrize(
    "field", ['"crash", "after": "Portion"', '"handler", "message": "Portion"']
)
def test_messages_are_known_before_there_is_any_broker(field: str) -> None:
    script = (
        "from distributary.simulator.scenario import OverlayTable, WorkloadTable;"
        "from distributary.simulator.scenario_faults import read_faults;"
        f"print(len(read_faults([{{'kind': {field}}}], OverlayTable(), WorkloadTable())))"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert done.stdout == "1\n", done.stderr
