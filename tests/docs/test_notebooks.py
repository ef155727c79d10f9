"""Every notebook runs from top to bottom and shows what is recorded in it.

After a change, `python -m tests.notebooks FILE` records it anew. Pictures are not compared byte by
byte, only that there is one; a cell with the tag "varies" may print something else each time.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.commands import forked
from tests.docs.test_documents import MACHINE_PATH, ROOT, broken_links, run
from tests.notebooks import read_notebook, sources

NOTEBOOKS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "examples").rglob("*.ipynb")
    if ".ipynb_checkpoints" not in path.parts
)
RUN = "import sys; from tests.notebooks import main; sys.exit(main(sys.argv[1:]))"


def played(path: Path) -> tuple[str, dict[str, Any]]:
    """Run a notebook in place; return what it complained about, and the notebook after that."""
    result = run([*forked(), "python", "-c", RUN, path.name], path.parent)
    return (result.stdout if result.returncode else ""), read_notebook(path)


def shown(notebook: dict[str, Any]) -> list[tuple[str, list[object]]]:
    """Return every code cell and what can be compared of its outputs."""
    return [
        ("".join(cell["source"]), [_comparable(output) for output in cell["outputs"]])
        for cell in notebook["cells"]
        if cell["cell_type"] == "code" and "varies" not in cell["metadata"].get("tags", [])
    ]


def _comparable(output: dict[str, Any]) -> object:
    if output["output_type"] == "stream":
        return "".join(output["text"])
    # What has a picture is told by it; a frame is compared by its words.
    data = output["data"]
    picture = "<svg" in "".join(data.get("text/html", ())) or "image/svg+xml" in str(data)
    return sorted(data), picture or "".join(data["text/plain"])


def test_there_is_a_notebook_for_each_planner() -> None:
    names = {Path(name).stem for name in NOTEBOOKS}
    assert {"placement", "fidelity", "wiring"} <= names


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_and_shows_what_is_recorded(name: str, tmp_path: Path) -> None:
    """In a copy of all examples, so that what it reads beside it is there."""
    copy = shutil.copytree(
        ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__")
    )
    complaint, after = played(copy / Path(name).relative_to("examples"))
    assert not complaint, complaint
    assert shown(after) == shown(read_notebook(ROOT / name))


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_as_jupyter_wants_it_and_names_nothing_of_a_machine(name: str) -> None:
    notebook = read_notebook(ROOT / name)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    cells = notebook["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)
    counts = [cell["execution_count"] for cell in cells if cell["cell_type"] == "code"]
    assert counts == list(range(1, len(counts) + 1))
    text = "\n\n".join(sources(notebook, "markdown"))
    assert text.startswith("# ")
    assert broken_links(name, text) == []
    lines = json.dumps(notebook, indent=1, ensure_ascii=False).splitlines()
    assert [line for line in lines if MACHINE_PATH.search(line)] == []


def small(*cells: str) -> str:
    """Return a notebook with these cells, as a file has it."""
    blank: dict[str, object] = {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
    }
    made = [{**blank, "id": f"c{at}", "source": [text]} for at, text in enumerate(cells)]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def test_cells_share_names_and_show_what_they_print_and_their_last_value(tmp_path: Path) -> None:
    """The runner would otherwise pass whatever it is given."""
    path = tmp_path / "small.ipynb"
    cells = ("x = 3\nprint('three')\nx + 1", "!echo $((1 + 1))", "x * 2;", "if x:\n    !echo 'yes'")
    path.write_text(small(*cells))
    complaint, after = played(path)
    assert complaint == ""
    assert [outputs for _, outputs in shown(after)] == [
        ["three\n", (["text/plain"], "4")],
        ["2\n"],
        [],
        ["yes\n"],
    ]


@pytest.mark.parametrize("cell", ["1 / 0", "!exit 3", "%matplotlib inline"])
def test_a_cell_that_fails_is_named(cell: str, tmp_path: Path) -> None:
    path = tmp_path / "small.ipynb"
    path.write_text(small("x = 1", cell))
    complaint, after = played(path)
    assert "cell 2" in complaint
    assert after == json.loads(small("x = 1", cell))
