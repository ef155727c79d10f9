"""Every part says which others it calls, and calls no other."""

from __future__ import annotations

import ast
import dataclasses
import re
from pathlib import Path

import pytest
from tests.content_worlds import ContentWorld

import distributary.broker
from distributary.broker.broker import PARTS

FOLDER = Path(distributary.broker.__path__[0])


def called_by(part: str) -> set[str]:
    """Return the parts whose names are looked up on a broker's core anywhere in a part."""
    found: set[str] = set()
    paths = sorted([*(FOLDER / part).glob("*.py"), *FOLDER.glob(f"{part}.py")])
    assert paths
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in PARTS:
                owner = ast.unparse(node.value)
                if owner.rpartition(".")[2] in ("core", "_core"):
                    found.add(node.attr)
    return found - {part}


@pytest.mark.parametrize("part", PARTS)
def test_a_part_calls_those_that_it_says_it_uses(part: str) -> None:
    assert sorted(PARTS[part].uses) == sorted(called_by(part))


def test_no_text_of_a_client_is_in_a_key() -> None:
    """A store may limit what keys contain; clients write what they like."""
    names = ("a b", "x/y", "../..", "é" * 200, "*.>")
    world = ContentWorld(4)
    for place, name in enumerate(names):
        world.subscribe(name, home=world.members[place % 4])
    world.run_s(5)
    for name in names:
        world.publish(name, world.members[0])
    world.run_s(30)
    keys = [key for node in world.world.nodes.values() for key in node.journal]
    assert any(key.startswith("deliveries/") for key in keys)
    assert [key for key in keys if not re.fullmatch(r"[a-z0-9/]{1,120}", key)] == []


def test_what_cannot_be_delivered_goes_back_to_the_part_that_handles_its_kind() -> None:
    """Whoever within the part handles it: `Links` knows parts only."""
    world = ContentWorld(1)
    running = world.world.nodes[world.members[0]].broker
    assert running is not None
    for part in running.core.parts.values():
        for kind in part.handlers():
            message = kind(*(None for _ in dataclasses.fields(kind)))
            assert running.core.part_of(message) is part
