"""Tell the whole story: `python -m examples.whole_story`."""

from __future__ import annotations

import multiprocessing
import sys
from concurrent.futures import Future, ProcessPoolExecutor
from importlib.util import find_spec
from pathlib import Path

from examples.whole_story.delivery import deliver
from examples.whole_story.history import tell_history
from examples.whole_story.outcome import Overlay
from examples.whole_story.report import write_report
from examples.whole_story.streams import follow
from examples.whole_story.telling import Teller

from distributary.content import MediaType
from distributary.errors import DistributaryError, MissingPackage
from distributary.media.registry import installed
from distributary.media.samples import map_pdf
from distributary.network.server import server_program
from distributary.pipeline.java import ensure_java

SEED = 7
FOLDER = Path("build/demo")


def main() -> int:
    """Tell every chapter, write the report, and say what it proved."""
    try:
        _check_packages()
        return _tell(Teller())
    except DistributaryError as error:
        print(f"make demo: {error}", file=sys.stderr)
        return 1


def _check_packages() -> None:
    """Raise what is missing here, before half of the story is told."""
    server_program()
    ensure_java()
    if find_spec("pyspark") is None:
        raise MissingPackage("pyspark", extra="spark", purpose="the history")
    for kind in ("image/webp", "audio/mpeg"):
        installed().route(MediaType.parse("application/pdf"), MediaType.parse(kind))


def _tell(say: Teller) -> int:
    FOLDER.mkdir(parents=True, exist_ok=True)
    # While Spark counts here, streams, and later the overlay, run beside it.
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=spawn) as beside:
        following = beside.submit(follow, seed=SEED, say=say)
        drawing = beside.submit(map_pdf, seed=SEED)
        delivering: list[Future[Overlay]] = []

        def wired(data: Path) -> None:
            delivering.append(beside.submit(deliver, data, drawing.result(), seed=SEED, say=say))

        history = tell_history(FOLDER, seed=SEED, say=say, wired=wired)
        streams, pdf, overlay = following.result(), drawing.result(), delivering[0].result()
    say("writing the report")
    savings = write_report(FOLDER, history, overlay, streams, pdf, seed=SEED)
    proven = overlay.proven and not streams.violations
    print(
        f"make demo: {overlay.made:,} of {overlay.owed:,} deliveries made once by "
        f"{len(overlay.names)} broker processes, one of which was killed, and "
        f"{overlay.agreed:,} of {overlay.predicted:,} as Spark had predicted; the map took "
        f"{len(overlay.map.conversions)} conversions at {_converting(overlay)} brokers. "
        f"Planned wiring costs {savings.wiring:.0%} less than {savings.wiring_rule}, planned "
        f"conversions of the map {savings.conversions:.0%} less than {savings.conversions_way}, "
        f"those of the whole history {savings.history:.0%} less than {savings.history_way}, "
        f"and in a simulation adapted trees lose {savings.streams:.0%} less than good ones that "
        f"stay as they are. The report is in {FOLDER / 'report.html'}."
    )
    if not proven:
        print("make demo: something was not delivered as it should be; see the report.")
    return 0 if proven else 1


def _converting(overlay: Overlay) -> int:
    return len({broker for broker, *_ in overlay.map.conversions})


if __name__ == "__main__":
    sys.exit(main())
