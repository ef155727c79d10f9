"""What the document of the protocol shows is what the code has."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.protocol_diagrams import generated, rewritten, tables

from distributary.broker.broker import PARTS
from distributary.broker.encoding import kinds
from distributary.broker.settings import Settings

DOCUMENT = Path(__file__).parents[2] / "docs" / "protocol.md"


def test_the_document_is_what_the_code_generates() -> None:
    """`python -m tests.protocol_diagrams docs/protocol.md` brings it up to date."""
    text = DOCUMENT.read_text("utf-8")
    assert text == rewritten(text)


def test_the_document_has_everything_that_is_generated_once() -> None:
    marked = re.findall(r"^<!-- generated: (.+) -->$", DOCUMENT.read_text("utf-8"), re.M)
    assert sorted(marked) == sorted(generated())


def test_every_message_and_record_and_table_is_shown() -> None:
    text = "\n".join(generated().values())
    numbers = [int(number) for number in re.findall(r"^(?:\| \w+ )?\| (\d+) \| `", text, re.M)]
    own = [n for n, kind in kinds().items() if kind.__module__.startswith("distributary.")]
    assert sorted(numbers) == own
    names = [table.name for own in tables().values() for table in own]
    assert len(set(names)) == len(names) == text.count("stateDiagram-v2")
    assert tables().keys() <= PARTS.keys()


def test_the_document_has_a_section_for_every_part() -> None:
    headings = re.findall(r"^## (.+)$", DOCUMENT.read_text("utf-8"), re.M)
    assert [heading for heading in headings if heading.lower() in PARTS] == [
        part.capitalize() for part in PARTS
    ]


def test_the_times_in_the_document_are_the_defaults() -> None:
    text = DOCUMENT.read_text("utf-8")
    times = re.findall(r"^\| `(\w+)\.(\w+)` \| ([\d.]+) \|", text, re.M)
    assert times
    for group, name, seconds in times:
        assert getattr(getattr(Settings(), group), name) == float(seconds), f"{group}.{name}"


def test_the_command_replaces_what_is_out_of_date(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("Before.\n<!-- generated: states links -->\nold\n<!-- end -->\nAfter.\n")
    command = [sys.executable, "-m", "tests.protocol_diagrams", str(path)]
    subprocess.run(command, check=True, timeout=120)
    text = path.read_text("utf-8")
    assert generated()["states links"] in text
    assert "old" not in text
    assert text.startswith("Before.\n")
    assert text.endswith("<!-- end -->\nAfter.\n")
