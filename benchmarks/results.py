"""Results on disk: one JSON object from which every document is made."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.chart import chart_svg
from benchmarks.report import report
from benchmarks.study import Findings, Size, Study

__all__ = ["Results"]

_SCALARS = re.compile(r"\[\s+([^\[\]{}]*?)\s+\]")


@dataclass(frozen=True)
class _Entry:
    """What one study found, as it is stored."""

    name: str
    found: dict[str, Any]
    gaps: Mapping[str, float]
    provenance: dict[str, object]


class Results:
    """The stored results of all studies, and the documents made from them.

    A study keeps its last results until it is run again, so each has its own machine,
    commit and date; those at the top are of the last run. Runs may go on at the same time:
    what is stored is read again whenever something is added to it.

    Parameters
    ----------
    folder
        Where `benchmarks.md`, `benchmarks/results.json` and the charts stand.
    """

    def __init__(self, folder: Path) -> None:
        self.page = folder / "benchmarks.md"
        self.store = folder / "benchmarks" / "results.json"
        self.document: dict[str, Any] = {"studies": {}, "history": []}
        self._unsaved: list[_Entry] = []
        self._read()

    def _read(self) -> None:
        if self.store.exists():
            self.document = json.loads(self.store.read_text(encoding="utf-8"))

    def add(
        self,
        study: Study,
        findings: Findings,
        *,
        size: Size,
        seconds: float,
        provenance: dict[str, object],
    ) -> None:
        """Enter what a study found, in place of what it found before."""
        found = {
            "about": study.about,
            "size": size,
            "command": f"python -m benchmarks {study.name} --size {size}",
            "seconds": round(seconds, 1),
            **provenance,
            "result_hash": findings.result_hash,
            "tables": [asdict(table) for table in findings.tables],
            "claims": [{**asdict(claim), "holds": claim.holds} for claim in findings.claims],
        }
        gaps = findings.gaps if size == "large" else {}
        entry = _Entry(study.name, found, gaps, provenance)
        self._unsaved.append(entry)
        self._enter(entry)

    def _enter(self, entry: _Entry) -> None:
        self.document = {**entry.provenance, **_without(self.document, entry.provenance)}
        self.document["studies"][entry.name] = entry.found
        if entry.gaps:
            self._remember(entry.gaps, entry.provenance)

    def _remember(self, gaps: Mapping[str, float], provenance: dict[str, object]) -> None:
        """Enter the gaps into the history, which has one row for each version."""
        versions: Any = provenance["versions"]
        history = self.document["history"]
        row = next((row for row in history if row["version"] == versions["distributary"]), None)
        if row is None:
            row = {"version": versions["distributary"], "gaps": {}}
            history.append(row)
        row.update({key: provenance[key] for key in ("date", "commit", "machine")})
        row["gaps"].update(gaps)

    def save(self, order: list[str]) -> None:
        """Write what was added to the stored results, and the charts and the page of all.

        Parameters
        ----------
        order
            The names of all studies, in the order of the page.
        """
        self._read()
        for entry in self._unsaved:
            self._enter(entry)
        self._unsaved.clear()
        studies = self.document["studies"]
        self.document["studies"] = {name: studies[name] for name in order if name in studies}
        self.store.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.document, indent=1, ensure_ascii=False, allow_nan=False)
        compact = _SCALARS.sub(lambda found: f"[{' '.join(found[1].split())}]", text)
        self.store.write_text(compact + "\n", encoding="utf-8")
        for study in self.document["studies"].values():
            for chart in (table["chart"] for table in study["tables"] if table["chart"]):
                path = self.store.with_name(f"{chart['name']}.svg")
                path.write_text(chart_svg(chart), encoding="utf-8")
        self.page.write_text(report(self.document), encoding="utf-8")


def _without(document: dict[str, Any], keys: dict[str, object]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key not in keys}
