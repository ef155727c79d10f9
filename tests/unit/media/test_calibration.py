"""Calibration: what conversions take becomes lines, and those a graph that planners read."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterable

import numpy as np
import pytest

from distributary.content.calibrated_graph import graph_for
from distributary.content.media_type import MediaType
from distributary.errors import BadInput
from distributary.media.calibration import Calibration, Sample, calibrate
from distributary.media.calibration_file import calibration_document
from distributary.media.converter import Converter
from distributary.media.converters import BUILT_IN
from distributary.media.failure import ConversionFailed, FailureKind
from distributary.media.family import Family, families_of, further_families
from distributary.media.formats import (
    FURTHER_FORMATS,
    MAP_FAMILY,
    PDF,
    VIDEO_FAMILY,
    VIDEO_FORMATS,
)
from distributary.media.limits import Limits
from distributary.media.line_fit import Line
from distributary.media.machine import machine_document
from distributary.media.measurement import MEGABYTE, Duration
from distributary.media.registry import Registry
from distributary.media.result import ConversionResult

# From a to b and on to c, straight to c, and back from b; z is out of reach.
PAIRS = (("a", "b"), ("a", "c"), ("b", "a"), ("b", "c"), ("z", "c"))


def named(letter: str) -> str:
    return f"text/{letter}"


class Letters(Converter):
    """Makes formats of half the size of the one before in the alphabet."""

    name = "letters"

    @property
    def version(self) -> str:
        return "1"

    def conversions(self) -> Iterable[tuple[MediaType, MediaType]]:
        return [(MediaType("text", source), MediaType("text", target)) for source, target in PAIRS]

    def converts(self, source: MediaType, target: MediaType) -> bool:
        return (source.subtype, target.subtype) in PAIRS

    def convert(
        self, content: bytes, source: MediaType, target: MediaType, limits: Limits
    ) -> bytes:
        return content[: len(content) // 2]


Seconds = Callable[[str, str, int, int], float]


class Host:
    """Carries out conversions in place, and says of each that it took what it is told.

    Parameters
    ----------
    seconds
        Given the two formats, the bytes of the source and how often this conversion of
        this content ran before; what it raises is the failure.
    """

    def __init__(self, seconds: Seconds) -> None:
        self._seconds = seconds
        self.ran: list[tuple[str, str, int]] = []

    def convert(self, content: bytes, source: MediaType, target: MediaType) -> ConversionResult:
        run = (source.subtype, target.subtype, len(content))
        before = self.ran.count(run)
        self.ran.append(run)
        seconds = self._seconds(*run, before)
        return ConversionResult(
            Letters().convert(content, source, target, Limits()), target, seconds, False
        )


def failed(kind: FailureKind) -> ConversionFailed:
    source, target = MediaType("text", "a"), MediaType("text", "b")
    return ConversionFailed(source, target, kind=kind, reason="no such luck", limits=Limits())


def sample(megabytes: float, letter: str = "a") -> Sample:
    return Sample(f"{megabytes} MB", bytes(round(megabytes * MEGABYTE)), named(letter))


def measured(
    seconds: Seconds, *megabytes: float, repeat: int = 3, checks: Iterable[float] = ()
) -> tuple[Calibration, list[tuple[str, str, int]]]:
    host = Host(seconds)
    result = calibrate(
        [sample(size) for size in megabytes],
        registry=Registry([Letters()]),
        convert=host.convert,
        checks=[sample(size) for size in checks],
        repeat=repeat,
    )
    return result, host.ran


def steady(source: str, target: str, size: int, before: int) -> float:
    return 0.5 + 2.0 * size / MEGABYTE


def line_of(calibration: Calibration, source: str, target: str) -> Line:
    [found] = [
        item.line
        for item in calibration.conversions
        if (item.conversion.source, item.conversion.target) == (named(source), named(target))
    ]
    return found


def test_costs_are_lines_over_the_size_of_the_sample() -> None:
    """From b, which has half its size, what takes 2 s a megabyte takes 1 s of the sample's."""
    result, _ = measured(steady, 1.0, 2.0, 4.0)
    assert [(item.conversion.source, item.conversion.target) for item in result.conversions] == [
        (named(source), named(target)) for source, target in PAIRS if source != "z"
    ]
    for pair, per_mb in ((("a", "b"), 2.0), (("a", "c"), 2.0), (("b", "c"), 1.0)):
        line = line_of(result, *pair)
        assert line.fixed == pytest.approx(0.5)
        assert line.per_mb == pytest.approx(per_mb)


def test_sizes_are_lines_and_the_source_is_what_they_are_measured_by() -> None:
    result, _ = measured(steady, 1.0, 2.0)
    sizes = {item.name: item.line for item in result.formats}
    assert sizes.keys() == {named("a"), named("b"), named("c")}
    assert sizes[named("a")] == Line(0.0, 1.0)
    for name in (named("b"), named("c")):
        assert sizes[name].fixed == pytest.approx(0.0, abs=1e-9)
        assert sizes[name].per_mb == pytest.approx(0.5)
    [source] = [item for item in result.formats if item.name == named("a")]
    assert [(size.content_mb, size.mb) for size in source.measured] == [(1.0, 1.0), (2.0, 2.0)]


def test_the_first_run_of_a_converter_does_not_count() -> None:
    """It loads libraries, which takes longer than the conversion."""

    def slow_at_first(source: str, target: str, size: int, before: int) -> float:
        started = (source, target) in host_started
        host_started.add((source, target))
        return 0.1 if started else 1000.0

    host_started: set[tuple[str, str]] = set()
    result, _ = measured(slow_at_first, 1.0, 2.0, repeat=1)
    assert [duration.seconds for item in result.conversions for duration in item.measured] == [
        0.1
    ] * 8


def test_a_round_runs_every_conversion_before_the_next_begins() -> None:
    _, ran = measured(steady, 1.0, 2.0, repeat=4)
    jobs = 8
    timed = ran[-4 * jobs :]
    rounds = [timed[start : start + jobs] for start in range(0, 4 * jobs, jobs)]
    assert all(sorted(one) == sorted(rounds[0]) for one in rounds)
    assert len(set(rounds[0])) == jobs
    assert len({tuple(one) for one in rounds}) > 1, "every round has an order of its own"


def test_the_same_seed_runs_in_the_same_order() -> None:
    assert measured(steady, 1.0, 2.0)[1] == measured(steady, 1.0, 2.0)[1]


def test_one_disturbed_run_moves_neither_median_nor_line() -> None:
    def disturbed(source: str, target: str, size: int, before: int) -> float:
        return 60.0 if before == 3 else 0.25

    result, _ = measured(disturbed, 1.0, 2.0, repeat=5)
    assert {one.seconds for item in result.conversions for one in item.measured} == {0.25}
    assert {item.line for item in result.conversions} == {Line(0.25, 0.0)}


def test_a_busy_machine_moves_the_median_and_not_the_line() -> None:
    """All runs but one are disturbed, of one sample more than of the other."""

    def busy(source: str, target: str, size: int, before: int) -> float:
        quiet = steady(source, target, size, before)
        return quiet if before % 5 == 2 else quiet * (1.5 if size > MEGABYTE else 1.1)

    result, _ = measured(busy, 1.0, 2.0, repeat=5)
    for source, per_mb in (("a", 2.0), ("b", 1.0)):
        line = line_of(result, source, "c")
        assert line.fixed == pytest.approx(0.5)
        assert line.per_mb == pytest.approx(per_mb)
    assert all(one.seconds > one.least for item in result.conversions for one in item.measured)


@pytest.mark.parametrize(
    ("runs", "median", "spread", "least"),
    [
        ([2.0], 2.0, 0.0, 2.0),
        ([1.0, 3.0], 2.0, 1.0, 1.0),
        ([5.0, 1.0, 2.0], 2.0, 2.0, 1.0),
        ([1.0, 2.0, 3.0, 4.0, 100.0], 3.0, 2.0, 1.0),
    ],
)
def test_runs_are_summed_up_by_median_quartiles_and_the_shortest(
    runs: list[float], median: float, spread: float, least: float
) -> None:
    assert Duration.of(0.5, runs) == Duration(0.5, median, spread, least)


def test_samples_of_one_size_leave_no_fixed_part_and_it_is_said() -> None:
    result, _ = measured(steady, 2.0)
    assert line_of(result, "a", "b") == Line(0.0, 2.25)
    assert result.proportional == (named("a"),)
    assert measured(steady, 2.0, 2.0)[0].proportional == (named("a"),)
    assert measured(steady, 2.0, 3.0)[0].proportional == ()


def test_checks_say_how_far_lines_are_off_and_do_not_move_them() -> None:
    """From a, 3 MB take a quarter more than the line through 1 and 2 MB; from b, as it says."""

    def bent(source: str, target: str, size: int, before: int) -> float:
        return 2.0 * size / MEGABYTE * (1.25 if (source, size) == ("a", 3 * MEGABYTE) else 1.0)

    plain, _ = measured(bent, 1.0, 2.0)
    checked, _ = measured(bent, 1.0, 2.0, checks=[3.0])
    assert [item.line for item in checked.conversions] == [item.line for item in plain.conversions]
    assert [item.line for item in checked.formats] == [item.line for item in plain.formats]
    assert [one.content_mb for item in checked.conversions for one in item.checked] == [3.0] * 4
    seconds, sizes = checked.seconds_misses, checked.size_misses
    assert seconds is not None
    assert sizes is not None
    assert (seconds.count, sizes.count) == (4, 2), "two from a and two from b; b and c, not a"
    assert seconds.worst == pytest.approx(0.2)
    assert seconds.median == pytest.approx(0.1)
    assert sizes.worst == pytest.approx(0.0, abs=1e-9)
    assert (plain.seconds_misses, plain.size_misses) == (None, None)
    document = calibration_document(checked, machine={}, command="", made="")
    assert document["check"] == {
        "samples": [{"name": "3.0 MB", "format": named("a"), "mb": 3.0}],
        "sizes": {"count": 2, "median": 0.0, "worst": 0.0},
        "seconds": {"count": 4, "median": 0.1, "worst": 0.2},
    }


def test_what_works_on_a_check_alone_has_no_line() -> None:
    def fails_when_small(source: str, target: str, size: int, before: int) -> float:
        if target == "b" and size < 3 * MEGABYTE:
            raise failed("damaged")
        return 0.5

    result, _ = measured(fails_when_small, 1.0, 2.0, checks=[3.0])
    assert [item.name for item in result.formats] == [named("a"), named("c")]
    assert [item.conversion.target for item in result.conversions] == [named("c")]


def test_a_check_in_a_format_that_no_sample_has_is_refused() -> None:
    with pytest.raises(BadInput, match=r"^1\.0 MB: is 'text/z', and no sample is$"):
        calibrate(
            [sample(1.0)],
            checks=[sample(1.0, "z")],
            registry=Registry([Letters()]),
            convert=Host(steady).convert,
        )


def test_a_conversion_that_fails_on_one_sample_is_measured_on_the_others() -> None:
    def fails_when_large(source: str, target: str, size: int, before: int) -> float:
        if (source, target, size) == ("a", "c", 4 * MEGABYTE):
            raise failed("memory")
        return 0.5

    result, ran = measured(fails_when_large, 1.0, 2.0, 4.0)
    [item] = [one for one in result.conversions if one.conversion.target == named("c")][:1]
    assert [one.content_mb for one in item.measured] == [1.0, 2.0]
    assert [(one.sample, one.reason) for one in result.failures] == [("4.0 MB", "no such luck")]
    assert ran.count(("a", "c", 4 * MEGABYTE)) == 1, "what fails once fails again"


def test_a_conversion_that_always_fails_is_left_out_with_what_it_alone_makes() -> None:
    def no_b(source: str, target: str, size: int, before: int) -> float:
        if target == "b":
            raise failed("damaged")
        return 0.5

    result, _ = measured(no_b, 1.0, 2.0)
    assert [item.name for item in result.formats] == [named("a"), named("c")]
    assert [item.conversion.target for item in result.conversions] == [named("c")]
    assert len(result.failures) == 2


def test_a_killed_worker_costs_one_run_only() -> None:
    def killed_once(source: str, target: str, size: int, before: int) -> float:
        if (source, target, before) == ("a", "c", 2):
            raise failed("killed")
        return 0.5

    result, _ = measured(killed_once, 1.0, 2.0)
    assert result.failures == ()
    assert len(result.conversions) == 4


def test_samples_that_nothing_can_be_made_from_are_refused() -> None:
    def fails(source: str, target: str, size: int, before: int) -> float:
        raise failed("damaged")

    with pytest.raises(BadInput, match=r"^samples: nothing can be made from 'text/a': no such"):
        measured(fails, 1.0, 2.0)


def test_an_empty_sample_is_refused() -> None:
    with pytest.raises(BadInput, match="is empty"):
        sample(0.0)


def test_samples_that_lead_to_one_format_are_to_be_calibrated_separately() -> None:
    with pytest.raises(BadInput, match=r"'text/a' and 'text/z' both lead to 'text/c'.*separately"):
        calibrate(
            [sample(1.0), sample(1.0, "z")],
            registry=Registry([Letters()]),
            convert=Host(steady).convert,
        )


def test_a_format_that_nothing_reads_is_refused() -> None:
    with pytest.raises(BadInput, match="nothing converts 'text/c'"):
        calibrate([sample(1.0, "c")], registry=Registry([Letters()]), convert=Host(steady).convert)


def test_progress_ends_where_it_said_it_would() -> None:
    told: list[tuple[str, int, int]] = []
    calibrate(
        [sample(1.0), sample(2.0)],
        registry=Registry([Letters()]),
        convert=Host(steady).convert,
        observe=lambda *step: told.append(step),
    )
    assert [done for _, done, _ in told] == list(range(1, len(told) + 1))
    assert {total for _, _, total in told} == {len(told)}
    assert told[-1][0] == "measuring"


@pytest.mark.parametrize("content_bytes", [0, 1, 10**4, 10**7, 10**12, 10**15])
def test_planners_read_the_document_for_content_of_any_size(content_bytes: int) -> None:
    result, _ = measured(steady, 1.0, 2.0)
    document = calibration_document(
        result,
        machine=machine_document(Registry([Letters()])),
        command="distributary calibrate",
        made="2026-01-31",
    )
    graph = graph_for(json.loads(json.dumps(document)), content_bytes)
    megabytes = content_bytes / MEGABYTE
    assert graph.sizes.tolist() == pytest.approx([megabytes, megabytes / 2, megabytes / 2])
    assert graph.costs[0, 1] == pytest.approx(0.5 + 2.0 * megabytes)
    assert np.isinf(graph.costs[2]).all()


def test_the_document_holds_what_was_measured_and_on_what() -> None:
    result, _ = measured(steady, 1.0, 2.0)
    document = calibration_document(
        result, machine={"processor": "quick"}, command="distributary calibrate", made="2026-01-31"
    )
    assert document["conversions"] == [
        {
            "from": item.conversion.source,
            "to": item.conversion.target,
            "cost": item.line.document(),
            "measured": [
                {
                    "content_mb": one.content_mb,
                    "seconds": one.seconds,
                    "spread": 0.0,
                    "least": one.seconds,
                }
                for one in item.measured
            ],
            "checked": [],
            "converter": "letters",
        }
        for item in result.conversions
    ]
    assert document["samples"] == [
        {"name": "1.0 MB", "format": named("a"), "mb": 1.0},
        {"name": "2.0 MB", "format": named("a"), "mb": 2.0},
    ]
    assert document["check"] is None
    assert document["families"] == [{"source": named("a"), "formats": 3, "conversions": 4}]
    assert (document["machine"], document["made"]) == ({"processor": "quick"}, "2026-01-31")


def test_the_machine_is_described_and_not_named() -> None:
    machine = machine_document(Registry([Letters()]))
    assert {"processor", "cores", "python", "packages"} <= machine.keys()
    written = json.dumps(machine)
    assert "/home" not in written
    assert len(platform.node()) < 4 or platform.node() not in written


def test_what_is_beyond_maps_and_videos_is_told_for_the_first_source_that_leads_to_it() -> None:
    registry = Registry(kind() for kind in BUILT_IN)
    sources = [str(PDF), str(VIDEO_FORMATS[0]), "text/html", "image/gif;width=2560"]
    families = further_families(registry, sources)
    assert [family.source for family in families] == sources
    told = [item for family in families for item in family.conversions]
    usual = [item for source in sources[:2] for item in Family.of(registry, source).conversions]
    assert len(told) == len(set(told))
    assert not set(told) & set(usual)
    # JSON and XML have a source of their own each.
    assert len(told) + len(usual) == len(registry.conversions) - 2
    names = [name for family in families for name in family.formats]
    assert sorted(names) == sorted(FURTHER_FORMATS - {"application/json", "application/xml"})
    for family in families:
        made = {family.source}
        for item in family.making:
            assert item.source in made
            made.add(item.target)
        assert {item.source for item in family.conversions} <= made


def test_a_map_and_a_video_stay_families_of_their_own() -> None:
    registry = Registry(kind() for kind in BUILT_IN)
    document, video = families_of(registry, [str(PDF), str(VIDEO_FORMATS[0])])
    assert set(document.formats) == MAP_FAMILY
    assert set(video.formats) == VIDEO_FAMILY
