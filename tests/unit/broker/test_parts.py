"""Every part says which others it calls, and calls no other."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import distributary.broker
from distributary.broker.broker import PARTS

FOLDER = Path(distributary.broker.__path__[0])


def called_by(part: str) -> set[str]:
    """Return the parts whose names are looked up on a broker's core anywhere in a folder."""
    found: set[str] = set()
    for path in sorted((FOLDER / part).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in PARTS:
                owner = ast.unparse(node.value)
                if owner in ("core", "self.core", "self._core"):
                    found.add(node.attr)
    return found - {part}


@pytest.mark.parametrize("part", PARTS)
def test_a_part_calls_those_that_it_says_it_uses(part: str) -> None:
    assert sorted(PARTS[part].uses) == sorted(called_by(part))
