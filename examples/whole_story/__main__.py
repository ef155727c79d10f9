"""Tell the whole story: `python -m examples.whole_story`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from examples.whole_story.delivery import Overlay, deliver
from examples.whole_story.history import History, tell_history
from examples.whole_story.report import write_report
from examples.whole_story.streams import Streams, follow

from distributary.cli.progress import progress
from distributary.media.samples import map_pdf

SEED = 7
FOLDER = Path("build/demo")


def main() -> int:
    """Tell every chapter, write the report, and say what it proved."""
    began = time.perf_counter()
    FOLDER.mkdir(parents=True, exist_ok=True)

    def say(words: str) -> None:
        print(f"{time.perf_counter() - began:6.1f} s  {words}", file=sys.stderr, flush=True)

    history: History = tell_history(FOLDER, seed=SEED, say=say)
    say("drawing the map")
    pdf = map_pdf(seed=SEED)
    overlay: Overlay = deliver(history.data, pdf, seed=SEED, say=say)
    streams: Streams = follow(seed=SEED, say=say)
    say("writing the report")
    savings = write_report(FOLDER, history, overlay, streams, pdf, seed=SEED)
    proven = (
        overlay.agreed == overlay.predicted
        and overlay.others == 0
        and overlay.made == overlay.owed
        and not (overlay.duplicates or overlay.violations or streams.violations)
    )
    print(
        f"make demo: {overlay.made:,} of {overlay.owed:,} deliveries made once, "
        f"{overlay.agreed:,} of {overlay.predicted:,} as Spark had predicted, in "
        f"{len(overlay.map.conversions)} real conversions at {_converting(overlay)} brokers; "
        f"planned wiring costs {savings.wiring:.0%} less, planned conversions "
        f"{savings.conversions:.0%} less and adapted streams lose {savings.streams:.0%} less than "
        f"without planning. The report is in {FOLDER / 'report.html'}."
    )
    if not proven:
        print("make demo: something was not delivered as it should be; see the report.")
    return 0 if proven else 1


def _converting(overlay: Overlay) -> int:
    return len({broker for broker, *_ in overlay.map.conversions})


if __name__ == "__main__":
    with progress():
        code = main()
    sys.exit(code)
