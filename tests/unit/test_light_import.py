"""What only names things, or explains itself, loads neither the compiler nor Arrow."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

# Printed by each program at its end: what it loaded of what takes long to load.
LOADED = """
import sys
print([name for name in ("numba", "pyarrow") if name in sys.modules])
"""

FILTER = """
from distributary.filters import Filter, Index, covers, evaluate
from distributary.content import Publication, Subscription

event = Publication.parse({"specversion": "1.0", "id": "1", "source": "/", "type": "a"})
assert Filter.parse([{"sql": "type = 'a'"}]).matches(event)
assert covers(Filter.parse([]), Filter.parse([{"exact": {"type": "a"}}]))
Subscription.parse({"id": "s1", "filters": []})
"""

TOLERANCE = """
from distributary.content import ContentSpace, Tolerance, Version
from distributary.content import EffectiveTolerance, ForwardingRule

ContentSpace.default().key(0)
child = EffectiveTolerance.of([Tolerance("/x", "absolute", 1.0), Tolerance("/x", "relative", 0.1)])
rule = ForwardingRule(parent=None, child=child)
assert rule.forwards(Version(2.0), Version(1.0))
assert not rule.forwards(Version(2.0), Version(1.9))
"""

# Every command by name, as Typer finds them, each asked for its help.
HELP = """
import json, typer
from distributary.cli import main
from distributary.cli.app import app

def names(command, path):
    yield path
    for name, inner in sorted(getattr(command, "commands", {}).items()):
        yield from names(inner, [*path, name])

asked = list(names(typer.main.get_command(app), []))
for path in asked:
    assert main([*path, "--help"]) == 0, path
print()
print(json.dumps(asked))
"""


def run(code: str) -> list[str]:
    """Return the lines that a Python of its own prints."""
    result = subprocess.run(
        [sys.executable, "-c", code + LOADED],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


@pytest.mark.parametrize(
    "code",
    [
        "import distributary",
        "import distributary.filters",
        "import distributary.content",
        "from distributary.filters import *",
        "from distributary.content import *",
        "import distributary.topology, distributary.simulator, distributary.pipeline",
        "from distributary.media import *",
        "import distributary.methods, distributary.frames",
        FILTER,
        TOLERANCE,
    ],
)
def test_it_loads_neither_compiler_nor_arrow(code: str) -> None:
    assert run(code)[-1] == "[]"


def test_the_help_of_no_command_loads_either() -> None:
    *_, asked, loaded = run(HELP)
    assert len(json.loads(asked)) > 20
    assert loaded == "[]"


def test_an_index_loads_the_compiler() -> None:
    """The check above would notice: this is what it looks for."""
    assert run("from distributary.filters import Index\nIndex()")[-1] == "['numba']"
