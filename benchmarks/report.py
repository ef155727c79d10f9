"""The page of results, made from the stored JSON: speed and quality apart."""

from __future__ import annotations

from typing import Any

__all__ = ["claim_lines", "report", "table_lines"]

_INTRODUCTION = """\
# Benchmarks

Written by `make bench` from [stored results](benchmarks/results.json). Do not edit it.
Words in the [glossary](glossary.md) are used as it defines them; the problems are those of
`distributary generate`, for [placement](placement.md#generating-problems) and for
[trees](fidelity.md#generating-problems).
"""

_SMALL = """\
**{share} of these results are from the small size**, which exists to show that the benchmarks run
and says little about speed or quality. `make bench` replaces them.
"""

_SECTIONS = {
    "speed": "Seconds and bytes. They depend on the machine.",
    "quality": (
        "Costs, gaps and iterations. They depend on the seeds alone, unless a search is cut short."
    ),
}

_RELATIONS = {"<=": "at most", "<": "less than", ">=": "at least", "==": "exactly"}


def report(document: dict[str, Any]) -> str:
    """Return the page as Markdown."""
    studies: dict[str, Any] = document["studies"]
    parts = [_INTRODUCTION]
    sizes = {study["size"] for study in studies.values()}
    if "small" in sizes:
        parts.append(_SMALL.format(share="Some" if "large" in sizes else "All"))
    parts.append(_claims(studies))
    for measures, about in _SECTIONS.items():
        parts.append(f"## {measures.capitalize()}\n\n{about}\n")
        for name, study in studies.items():
            tables = [table for table in study["tables"] if table["measures"] == measures]
            if tables:
                parts.append(_section(name, study, tables))
    if document["history"]:
        parts.append(_history(document["history"]))
    return "\n".join(parts)


def _claims(studies: dict[str, Any]) -> str:
    rows: list[tuple[str, ...]] = [
        (name, study["size"], *_claim_cells(claim))
        for name, study in studies.items()
        for claim in study["claims"]
    ]
    holding = sum(row[-1] == "yes" for row in rows)
    columns = ["study", "size", "claim", "measured", "limit", "holds"]
    lines = ["## Claims", "", f"{holding} of {len(rows)} claims hold.", ""]
    return "\n".join([*lines, *_aligned(columns, rows, numeric={3}), ""])


def _claim_cells(claim: dict[str, Any]) -> tuple[str, str, str, str]:
    unit = f" {claim['unit']}" if claim["unit"] else ""
    return (
        claim["name"],
        f"{_short(claim['measured'])}{unit}",
        f"{_RELATIONS[claim['relation']]} {_short(claim['limit'])}{unit}",
        "yes" if claim["holds"] else "**no**",
    )


def _short(value: float) -> str:
    return "0" if 0.0 <= value < 5e-4 else f"{value:.3g}"


def _section(name: str, study: dict[str, Any], tables: list[dict[str, Any]]) -> str:
    lines = [f"### {name}", "", study["about"], ""]
    for table in tables:
        lines += [f"**{table['title']}.** {table['notes']}".rstrip(), "", *table_lines(table), ""]
        if table["chart"]:
            chart = table["chart"]
            lines += [f"![{chart['title']}](benchmarks/{chart['name']}.svg)", ""]
    return "\n".join([*lines, _caption(study), ""])


def _caption(study: dict[str, Any]) -> str:
    machine, versions = study["machine"], study["versions"]
    software = ", ".join(
        f"{name} {versions[key]}"
        for name, key in (
            ("distributary", "distributary"),
            ("Python", "python"),
            ("NumPy", "numpy"),
            ("Numba", "numba"),
        )
    )
    return (
        f"`{study['command']}`, {study['date']}, commit {study['commit']}; {software}; "
        f"{machine['cores']} cores of {machine['cpu']}, {machine['memory_gib']} GiB, "
        f"{machine['system']}, load {machine['load']} before; {study['seconds']:g} s in all; "
        f"result `{study['result_hash']}`."
    )


def _history(history: list[dict[str, Any]]) -> str:
    families = sorted({family for row in history for family in row["gaps"]})
    columns = ["version", "date", "commit", "cores", *(f"{family} %" for family in families)]
    rows = [
        (
            row["version"],
            row["date"],
            row["commit"],
            f"{row['machine']['cores']} of {row['machine']['cpu']}",
            *(
                f"{row['gaps'][family]:.2f}" if family in row["gaps"] else "-"
                for family in families
            ),
        )
        for row in history
    ]
    about = (
        "The mean gap of `auto` by family of problems and version: to its lower bound, for trees "
        "of few servers to the optimum, and for trees of many servers to annealing."
    )
    numeric = set(range(4, len(columns)))
    return "\n".join(["## History", "", about, "", *_aligned(columns, rows, numeric=numeric), ""])


def claim_lines(claims: list[dict[str, Any]]) -> list[str]:
    """Return claims as lines for a terminal."""
    lines = []
    for claim in claims:
        name, measured, limit, _ = _claim_cells(claim)
        verdict = "holds" if claim["holds"] else "FAILS"
        lines.append(f"{verdict}: {name}: {measured}, must be {limit}")
    return lines


def table_lines(table: dict[str, Any]) -> list[str]:
    """Return a table as Markdown that also reads well in a terminal."""
    columns = table["columns"]
    rows = [
        tuple(_cell(value, column["decimals"]) for value, column in zip(row, columns, strict=True))
        for row in table["rows"]
    ]
    numeric = {
        place
        for place in range(len(columns))
        if not any(isinstance(row[place], str) for row in table["rows"])
    }
    return _aligned([column["name"] for column in columns], rows, numeric=numeric)


def _cell(value: str | float | None, decimals: int) -> str:
    if value is None:
        return "unknown"
    return value if isinstance(value, str) else f"{value:,.{decimals}f}"


def _aligned(columns: list[str], rows: list[tuple[str, ...]], *, numeric: set[int]) -> list[str]:
    widths = [max(len(cell) for cell in cells) for cells in zip(columns, *rows, strict=True)]

    def line(cells: list[str] | tuple[str, ...]) -> str:
        padded = (
            cell.rjust(width) if place in numeric else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return f"| {' | '.join(padded)} |"

    rule = [
        "-" * (width - 1) + ":" if place in numeric else "-" * width
        for place, width in enumerate(widths)
    ]
    return [line(columns), line(rule), *(line(row) for row in rows)]
