"""`python -m benchmarks`: run studies, print what they find, and store large runs.

Tables go to standard output, progress to standard error. The exit code is 1 when a claim
does not hold.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from benchmarks.machine import provenance
from benchmarks.report import claim_lines, table_lines
from benchmarks.results import Results
from benchmarks.studies import STUDIES
from benchmarks.study import Findings, Size, Study

__all__ = ["main"]

_DOCUMENTS = Path(__file__).parents[1] / "docs"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the studies that are asked for and return the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    size: Size = options.size
    names = [study.name for study in STUDIES]
    for unknown in (name for name in options.names if name not in names):
        parser.error(f"{unknown!r} is none of {', '.join(names)}")
    chosen = [study for study in STUDIES if not options.names or study.name in options.names]
    store = options.store or size == "large"
    if size == "large":
        minutes = sum(study.minutes for study in chosen)
        _say("benchmarks", f"{len(chosen)} studies, about {minutes:g} minutes on two quiet cores")
    origin = provenance()
    results = Results(_DOCUMENTS)
    holding = count = 0
    for study in chosen:
        start = time.perf_counter()
        findings = study.run(size, partial(_say, study.name))
        seconds = time.perf_counter() - start
        print(_summary(study, findings, seconds), flush=True)
        holding += sum(claim.holds for claim in findings.claims)
        count += len(findings.claims)
        if store:
            results.add(study, findings, size=size, seconds=seconds, provenance=origin)
            # After every study, so that a run that is interrupted keeps what it has found.
            results.save(names)
    if store:
        _say("benchmarks", f"written to {results.page.name} and {results.store.name}")
    print(f"{holding} of {count} claims hold")
    return 0 if holding == count else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure speed and quality of the planners."
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"{', '.join(study.name for study in STUDIES)}; all of them unless named",
    )
    parser.add_argument("--size", choices=("small", "large"), default="large")
    parser.add_argument(
        "--store",
        action="store_true",
        help="store results and rewrite docs/benchmarks.md, as a large run always does",
    )
    return parser


def _summary(study: Study, findings: Findings, seconds: float) -> str:
    """Return what a study found as text for a terminal."""
    lines = [f"== {study.name} ({seconds:.1f} s, result {findings.result_hash})", ""]
    for table in findings.tables:
        lines += [table.title, "", *table_lines(asdict(table)), ""]
    claims = [{**asdict(claim), "holds": claim.holds} for claim in findings.claims]
    return "\n".join([*lines, *claim_lines(claims), ""])


def _say(who: str, what: str) -> None:
    print(f"{who}: {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
