"""Lines through real conversions predict clips that they were not drawn through."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from examples.sample_content import clip_mp4 as drawn_clip

from distributary.content.media_type import MediaType
from distributary.media.calibration import Calibration, Sample, calibrate
from distributary.media.converters.video import Video
from distributary.media.line_fit import Line
from distributary.media.pool import Pool
from distributary.media.prediction import Misses, relative_error
from distributary.media.registry import Registry
from distributary.media.samples import clip_mp4

SOURCE = "video/mp4;width=640;bitrate=1000k"
PAIRS = [
    (SOURCE, "video/mp4;width=320;bitrate=200k"),
    (SOURCE, "video/x-flv;width=176;bitrate=80k"),
    ("video/mp4;width=320;bitrate=200k", "video/x-msvideo;width=176;bitrate=80k"),
]


class FewVideos(Video):
    """Lists three conversions, one of which begins with what another makes."""

    def conversions(self) -> Iterator[tuple[MediaType, MediaType]]:
        return ((MediaType.parse(source), MediaType.parse(target)) for source, target in PAIRS)


def sample(name: str, content: bytes) -> Sample:
    return Sample(name, content, SOURCE)


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    """Drawn through clips of 1 and 4 seconds, and checked on others, one of another country."""
    with Pool(workers=1) as pool:
        return calibrate(
            [sample(f"{seconds} s", clip_mp4(seconds)) for seconds in (1, 4)],
            checks=[sample("2.5 s", clip_mp4(2.5)), sample("elsewhere", drawn_clip(2, seed=3))],
            registry=Registry([FewVideos()]),
            convert=pool.convert,
            repeat=2,
        )


def test_sizes_of_other_clips_are_predicted(calibration: Calibration) -> None:
    sizes = calibration.size_misses
    assert sizes is not None
    assert sizes.count == 3 * 2
    assert sizes.worst < 0.15


def test_seconds_of_other_clips_are_predicted(calibration: Calibration) -> None:
    """Generously, for processors do not always run alike; how closely, a study measures.

    A line that knew nothing of the size of content would be off by several times as much,
    and one through the time that has passed by as much as the machine is busy.
    """
    seconds = calibration.seconds_misses
    assert seconds is not None
    assert seconds.count == len(PAIRS) * 2
    assert seconds.median < 0.5
    for item in calibration.conversions:
        short, long = item.measured
        assert long.seconds > 2 * short.seconds


def test_errors_are_shares_of_what_was_measured() -> None:
    line = Line(1.0, 2.0)
    assert relative_error(line, content_mb=2.0, amount=4.0) == pytest.approx(0.25)
    assert relative_error(line, content_mb=2.0, amount=10.0) == pytest.approx(0.5)
    assert relative_error(Line(0.0, 0.0), content_mb=2.0, amount=0.0) == 0.0
    assert relative_error(line, content_mb=2.0, amount=4.0, floor=10.0) == pytest.approx(0.1)


def test_errors_are_summed_up_by_median_and_worst() -> None:
    assert Misses.of([]) is None
    assert Misses.of([0.5, 0.125, 0.25, 0.75]) == Misses(4, 0.375, 0.75)
