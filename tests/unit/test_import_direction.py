"""Imports run one way, as drawn in ARCHITECTURE.md: read from the source, not from a run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "distributary"

# From the bottom up. A package may import from every line below its own and from no
# other; packages on one line do not import each other. Planned packages are listed
# too, so that the first file of one is already held to its place.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("content", "topology", "drawing"),
    ("client",),
    ("filters", "placement", "fidelity", "wiring", "media"),
    ("broker",),
    ("simulator", "network", "pipeline"),
    ("reproduce", "console"),
    ("cli",),
)
# A conversion is an effect that the host carries out: the broker knows no converter. The client
# library is small, and goes through the front door: only commands use it.
_BETWEEN = [package for line in LAYERS[2:-1] for package in line]
FORBIDDEN = {("broker", "media"), ("client", "topology"), ("client", "drawing")} | {
    (package, "client") for package in _BETWEEN
}
# Modules beside the packages that every package may import. They import only each other.
SHARED = (
    *("arguments", "arrays", "cores", "delta", "errors", "exports", "files", "frames", "kernels"),
    *("methods", "xorshift"),
)

LEVEL = {package: level for level, line in enumerate(LAYERS) for package in line}
# `python -m distributary` is the command by another name.
ENTRY = "__main__"


def imported_names(tree: ast.Module, *, package: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Yield (line, absolute dotted name) for every import, at any depth of the module.

    `package` is the package that contains the module, for relative imports. Imports inside
    functions and under `if TYPE_CHECKING` count: a type in the wrong place is in the wrong
    place. So does `import_module` with a literal name.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            prefix = ".".join((*base, *((node.module,) if node.module else ())))
            for alias in node.names:
                yield node.lineno, f"{prefix}.{alias.name}"
        elif isinstance(node, ast.Call) and node.args:
            called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            called = node.func.id if isinstance(node.func, ast.Name) else called
            first = node.args[0]
            if (
                called in {"import_module", "__import__"}
                and isinstance(first, ast.Constant)
                and isinstance(first.value, str)
            ):
                yield node.lineno, first.value


def may_import(importer: str, imported: str) -> bool:
    """Say whether one part of distributary may import another, by their first names."""
    if imported in SHARED or imported == importer:
        return True
    if importer == ENTRY:
        return imported in LEVEL
    if importer == "__init__":
        # `distributary.connect` is where everybody looks for it.
        return imported == "client"
    if importer not in LEVEL or imported not in LEVEL:
        return False
    return LEVEL[imported] < LEVEL[importer] and (importer, imported) not in FORBIDDEN


def violations(source: str, path: Path) -> list[str]:
    """Return a sentence for every import in `source` that climbs.

    `path` is relative to the folder of the package `distributary`.
    """
    package = ("distributary", *path.parent.parts)
    importer = path.parts[0] if len(path.parts) > 1 else path.stem
    found = []
    for line, name in imported_names(ast.parse(source), package=package):
        parts = name.split(".")
        if parts[0] != "distributary" or len(parts) < 2:
            continue
        # `from distributary import __version__` names no part of the package.
        if parts[1].startswith("__"):
            continue
        if not may_import(importer, parts[1]):
            found.append(f"{path.as_posix()}:{line}: {importer} imports {parts[1]}")
    return sorted(found)


def source_paths() -> list[Path]:
    return sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))


def test_every_import_in_the_source_goes_down_a_line() -> None:
    climbing = [
        sentence
        for path in source_paths()
        for sentence in violations((SOURCE / path).read_text(encoding="utf-8"), path)
    ]
    assert climbing == []


def test_every_package_has_a_place_in_the_layers() -> None:
    present = {path.parts[0] for path in source_paths() if len(path.parts) > 1}
    assert present <= LEVEL.keys(), "give the new package a line in LAYERS and ARCHITECTURE.md"
    assert {"content", "topology", "placement"} <= present


def test_modules_beside_the_packages_are_the_shared_ones() -> None:
    beside = {path.stem for path in source_paths() if len(path.parts) == 1}
    assert beside - {"__init__", ENTRY} == set(SHARED)


def test_the_architecture_document_draws_the_same_lines() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = text.partition("## The direction of imports")[2].partition("\n## ")[0]
    drawing = section.split("```")[1]
    drawn = [re.split(r"\s{2,}", line)[0].split(", ") for line in drawing.strip().splitlines()]
    assert [sorted(line) for line in drawn] == [sorted(line) for line in LAYERS]


@pytest.mark.parametrize(
    ("path", "source", "expected"),
    [
        ("content/a.py", "from distributary.placement import place", "content imports placement"),
        ("content/a.py", "import distributary.topology.tree", "content imports topology"),
        ("placement/a.py", "from distributary import wiring", "placement imports wiring"),
        ("placement/a.py", "from ..cli import main", "placement imports cli"),
        ("placement/a.py", "from .. import fidelity", "placement imports fidelity"),
        ("topology/a.py", "def f():\n    import distributary.broker", "topology imports broker"),
        ("broker/a.py", "from distributary.media import convert", "broker imports media"),
        ("simulator/a.py", "from distributary.network.host import x", "simulator imports network"),
        ("errors.py", "from distributary.content import AdaptationGraph", "errors imports content"),
        ("client/a.py", "from distributary.topology import x", "client imports topology"),
        ("client/a.py", "from distributary.filters import Filter", "client imports filters"),
        ("network/a.py", "from distributary.client import connect", "network imports client"),
        ("__init__.py", "from distributary.placement import place", "__init__ imports placement"),
        ("content/a.py", "from distributary.unheard_of import x", "content imports unheard_of"),
        (
            "content/a.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import distributary.cli",
            "content imports cli",
        ),
        (
            "filters/a.py",
            "import importlib\nimportlib.import_module('distributary.broker')",
            "filters imports broker",
        ),
    ],
)
def test_an_import_that_climbs_is_caught(path: str, source: str, expected: str) -> None:
    found = violations(source, Path(path))
    assert len(found) == 1
    assert found[0].endswith(expected)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("content/a.py", "from distributary.errors import BadInput\nimport numpy as np"),
        ("content/a.py", "from distributary.content.b import c\nfrom .b import c\nfrom . import b"),
        ("placement/a.py", "from distributary.content import x\nfrom ..topology import y"),
        ("broker/a.py", "import distributary.filters, distributary.placement"),
        ("simulator/a.py", "from distributary.media import convert"),
        ("cli/a.py", "from distributary import __version__\nimport distributary.pipeline"),
        ("arrays.py", "from distributary.errors import BadInput"),
        ("client/a.py", "from distributary.content import Publication"),
        ("__init__.py", "from distributary.client import connect"),
        ("__main__.py", "from distributary.cli import main"),
        ("content/a.py", "import distributary_extras.cli"),
    ],
)
def test_an_import_that_goes_down_is_allowed(path: str, source: str) -> None:
    assert violations(source, Path(path)) == []
