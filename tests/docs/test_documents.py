"""What the documents say is true: links lead somewhere, and every example runs as printed."""

from __future__ import annotations

import atexit
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import get_args

import pytest
from tests.commands import forked
from tests.quick_spark import JAVA_OPTIONS, SETTINGS

from distributary.media.failure import FailureKind
from distributary.media.limits import Limits

ROOT = Path(__file__).parents[2]

# Documents whose `console` and `python` blocks are run, in order, in one empty folder.
GUIDES = (
    "README.md",
    "docs/first-hour.md",
    "docs/networks.md",
    "docs/placement.md",
    "docs/fidelity.md",
    "docs/wiring.md",
    "docs/methods.md",
    "docs/filters.md",
    "docs/cesql.md",
    "docs/content.md",
    "docs/media.md",
    "docs/pipeline.md",
    "docs/month.md",
    "docs/adaptation.md",
    "docs/simulator.md",
    "docs/queueing.md",
)
# What a `console` block may run. Anything else belongs in a block marked `sh`.
RUNNABLE = re.compile(
    r"distributary |cat > [\w.-]+ <<'EOF'|echo \$\?$|cat [\w.-]+$|head -n \d+ [\w.-]+$"
)
MACHINE_PATH = re.compile(
    r"(?<![\w.:/<>-])(?:/(?:Users|home|mnt|opt|root|srv|tmp|usr|var|work)/|[A-Z]:\\)|file://"
)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the line on which it opens."""

    language: str
    text: str
    line: int


@dataclass(frozen=True)
class Command:
    """One command of a `console` block with the output printed under it."""

    text: str
    expected: str
    line: int


def documents() -> list[str]:
    """Return every Markdown file of the project, relative to its root."""
    return sorted(
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.md")
        if not any(
            part.startswith(".") or part in {"build", "dist", "node_modules"}
            for part in path.relative_to(ROOT).parts
        )
    )


def blocks(text: str) -> list[Block]:
    """Return the fenced blocks of a document."""
    found: list[Block] = []
    opened: tuple[str, int] | None = None
    body: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("```"):
            if opened is None:
                opened, body = (line[3:].strip(), number), []
            else:
                found.append(Block(opened[0], "\n".join(body), opened[1]))
                opened = None
        elif opened is not None:
            body.append(line)
    assert opened is None, f"the block opened on line {opened} is not closed"
    return found


def prose(text: str) -> str:
    """Return a document without its fenced blocks and inline code."""
    kept: list[str] = []
    inside = False
    for line in text.splitlines():
        if line.startswith("```"):
            inside = not inside
        elif not inside:
            kept.append(re.sub(r"`[^`]*`", "`code`", line))
    return "\n".join(kept)


def links(text: str) -> list[str]:
    """Return the targets of the links and pictures of a document."""
    return re.findall(r"\]\(([^)\s]+)\)", prose(text))


def anchors(text: str) -> set[str]:
    """Return the fragments that a document's headings answer to."""
    found: set[str] = set()
    inside = False
    for line in text.splitlines():
        if line.startswith("```"):
            inside = not inside
        heading = re.match(r"#{1,6} +(.+)", line)
        if heading and not inside:
            words = re.sub(r"[^\w\- ]", "", heading[1].lower())
            found.add(words.strip().replace(" ", "-"))
    return found


def broken_links(name: str, text: str) -> list[str]:
    """Return the relative links of document `name` that lead nowhere."""
    broken = []
    for target in links(text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, fragment = target.partition("#")
        place = (ROOT / name).parent / path if path else ROOT / name
        if not place.exists():
            broken.append(f"{name}: {target}: no such file")
        elif fragment:
            other = text if not path else place.read_text(encoding="utf-8")
            if fragment not in anchors(other):
                broken.append(f"{name}: {target}: no such heading")
    return broken


def commands(block: Block) -> Iterator[Command]:
    """Yield the commands of a `console` block.

    A command begins with `$ `, and takes a here-document with it. What follows, up to the
    next command, is its output.
    """
    lines = block.text.splitlines()
    position = 0
    while position < len(lines):
        start = position
        assert lines[position].startswith("$ "), f"line {block.line}: output before a command"
        text = [lines[position][2:]]
        position += 1
        if text[0].endswith("<<'EOF'"):
            end = lines.index("EOF", position)
            text += lines[position : end + 1]
            position = end + 1
        output = []
        while position < len(lines) and not lines[position].startswith("$ "):
            output.append(lines[position])
            position += 1
        yield Command("\n".join(text), "\n".join(output), block.line + 1 + start)


def matches(expected: str, actual: str) -> bool:
    """Say whether `actual` is `expected`, where `...` and spaces before it stand for anything.

    On a busy machine a number of seconds is wider, and there are fewer spaces before it.
    """
    pattern = ".*?".join(re.escape(part) for part in re.split(r" *\.\.\.", tidy(expected)))
    return re.fullmatch(pattern, tidy(actual), flags=re.DOTALL) is not None


def tidy(text: str) -> str:
    """Return the text without the spaces and empty lines at its ends that nobody sees.

    And without what a command says only where it has never run before.
    """
    lines = (line for line in text.splitlines() if not line.startswith("compiling, once"))
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def environment(*, installed: bool) -> dict[str, str]:
    """Return the environment in which examples run, without colour."""
    programs = Path(sys.executable).parent if installed else quick_programs()
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    quick = {
        "PYTHONPATH": os.pathsep.join(paths),
        "SPARK_CONF_DIR": str(programs),
        "SPARK_SUBMIT_OPTS": JAVA_OPTIONS,
    }
    return {
        **{k: v for k, v in os.environ.items() if k not in {"COLUMNS", "FORCE_COLOR"}},
        "PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "NO_COLOR": "1",
        "TERM": "dumb",
        **({} if installed else quick),
    }


@cache
def quick_programs() -> Path:
    """Make a folder with a `distributary` and with settings that load little each time."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    script = folder / "distributary"
    script.write_text(f'#!/bin/sh\nexec {shlex.join(forked())} distributary "$@"\n')
    script.chmod(0o755)
    settings = "".join(f"{name} {value}\n" for name, value in SETTINGS.items())
    (folder / "spark-defaults.conf").write_text(settings)
    return folder


def play(text: str, folder: Path, *, installed: bool = False) -> list[str]:
    """Run the examples of a document in `folder` and return what differs from what it says.

    With the programs that are `installed`, as a reader would, or with forks of one that has
    loaded everything.
    """
    differences = []
    found = blocks(text)
    python = [sys.executable] if installed else [*forked(), "python"]
    for index, block in enumerate(found):
        if block.language == "console":
            differences += play_console(block, folder, installed=installed)
        elif block.language == "python":
            follower = found[index + 1] if index + 1 < len(found) else None
            expected = follower.text if follower and follower.language == "text" else ""
            result = run([*python, "-c", block.text], folder, installed=installed)
            if result.returncode != 0 or not matches(expected, result.stdout):
                differences.append(f"line {block.line}: python printed\n{result.stdout}")
    return differences


def play_console(block: Block, folder: Path, *, installed: bool) -> list[str]:
    """Run one `console` block; a command may fail only if the next one asks for `$?`."""
    differences = []
    script = list(commands(block))
    code = 0
    for index, command in enumerate(script):
        assert RUNNABLE.match(command.text), f"line {command.line}: not runnable: {command.text}"
        result = run(["bash", "-c", f"(exit {code})\n{command.text}"], folder, installed=installed)
        code = result.returncode
        asked = index + 1 < len(script) and script[index + 1].text == "echo $?"
        if code != 0 and not asked:
            differences.append(f"line {command.line}: exit code {code}\n{result.stdout}")
        elif command.expected and not matches(command.expected, result.stdout):
            differences.append(f"line {command.line}: printed\n{result.stdout}")
    return differences


def run(
    command: list[str], folder: Path, *, installed: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run a command with both streams on one screen."""
    return subprocess.run(
        command,
        cwd=folder,
        env=environment(installed=installed),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=1800,
        check=False,
    )


@pytest.mark.parametrize("name", documents())
def test_relative_links_lead_to_a_file_and_a_heading(name: str) -> None:
    assert broken_links(name, (ROOT / name).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("name", documents())
def test_no_document_names_a_path_of_somebodys_machine(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if MACHINE_PATH.search(line)] == []


@pytest.mark.parametrize("name", GUIDES)
def test_examples_run_and_print_what_the_document_says(name: str, tmp_path: Path) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    differences = play(text, tmp_path, installed=name == "README.md")
    assert not differences, "\n".join(differences)


def test_the_readme_has_an_example_of_every_kind() -> None:
    """Nothing above would notice if the examples were gone."""
    languages = {block.language for block in blocks((ROOT / "README.md").read_text("utf-8"))}
    assert {"console", "python", "text", "sh"} <= languages


def test_the_readme_shows_the_output_of_the_demo() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = text.partition("<!-- demo-output:begin -->")[2].partition("<!-- demo-output:end -->")[0]
    (block,) = blocks(shown.strip())
    assert block.text.strip()


def section(text: str, heading: str) -> str:
    """Return what stands under a heading of the second level."""
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def first_column(text: str) -> set[str]:
    """Return every word in code that stands in the first column of a table."""
    cells = re.findall(r"^\|((?:\\\||[^|])+)\|", text, re.M)
    return {
        word for cell in cells for code in re.findall(r"`([^`]+)`", cell) for word in code.split()
    }


@pytest.mark.parametrize(
    ("command", "document", "heading"),
    [
        ("place", "placement.md", "Planning a publication"),
        ("compare", "placement.md", "Comparing methods"),
        ("generate placement", "placement.md", "Generating problems"),
        ("tree", "fidelity.md", "Building a tree"),
        ("generate tree", "fidelity.md", "Generating problems"),
        ("wire", "wiring.md", "Wiring users"),
        ("generate wiring", "wiring.md", "Generating problems"),
        ("convert", "media.md", "Converting a file"),
        ("formats", "media.md", "Listing conversions"),
        ("calibrate", "media.md", "Calibrating"),
        ("samples", "media.md", "Sample content"),
    ],
)
def test_the_guide_has_every_option_and_no_other(
    command: str, document: str, heading: str, tmp_path: Path
) -> None:
    text = run(["distributary", *command.split(), "--help"], tmp_path).stdout
    offered = set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", text, re.M)) - {"--help"}
    guide = section((ROOT / "docs" / document).read_text(encoding="utf-8"), heading)
    described = {word for word in first_column(guide) if word.startswith("--")}
    assert offered
    assert described == offered


@pytest.mark.parametrize(
    ("command", "document"),
    [("place", "placement.md"), ("tree", "fidelity.md"), ("wire", "wiring.md")],
)
def test_the_guide_has_every_method_and_no_other(
    command: str, document: str, tmp_path: Path
) -> None:
    text = run(["distributary", command, "--help"], tmp_path).stdout
    offered = re.search(r"--method <([a-z|-]+)>", text)
    assert offered
    guide = section((ROOT / "docs" / document).read_text(encoding="utf-8"), "Methods")
    assert first_column(guide) == set(offered[1].split("|"))


def test_the_guide_to_media_has_every_limit_and_every_kind_of_failure() -> None:
    guide = (ROOT / "docs" / "media.md").read_text(encoding="utf-8")
    assert first_column(section(guide, "Limits")) == {item.name for item in fields(Limits)}
    assert first_column(section(guide, "Failures")) == set(get_args(FailureKind))


def test_the_index_of_decisions_agrees_with_their_headers() -> None:
    folder = ROOT / "docs" / "adr"
    index = re.findall(
        r"^\| \[(\d{4})\]\(([^)]+)\) \| (.+?) \| (.+?) \| (\S+) \|$",
        (folder / "README.md").read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )
    stated = []
    for path in sorted(folder.glob("[0-9]*.md")):
        text = path.read_text(encoding="utf-8")
        title = re.match(r"# (\d+)\. (.+)\n", text)
        header = re.search(r"^\| date \| status \|\n\|---\|---\|\n\| \S+ \| (.+) \|$", text, re.M)
        revisions = re.findall(r"^\| \d+ \| (\d{4}-\d\d-\d\d) \| .+ \|$", text, re.M)
        assert title, path.name
        assert header, path.name
        assert revisions, path.name
        assert path.name.startswith(f"{int(title[1]):04d}-")
        stated.append((f"{int(title[1]):04d}", path.name, title[2], header[1], max(revisions)))
    assert index == stated


def test_every_decision_has_the_same_sections() -> None:
    sections = [
        "Context",
        "Decision",
        "Consequences",
        "What is not promised",
        "Alternatives considered",
    ]
    for path in sorted((ROOT / "docs" / "adr").glob("[0-9]*.md")):
        assert re.findall(r"^## (.+)$", path.read_text(encoding="utf-8"), re.M) == sections


def test_the_glossary_is_in_alphabetical_order() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    nouns = re.findall(r"^\*\*([^*]+?)\.?\*\*", text, re.M)
    assert len(nouns) > 30
    assert nouns == sorted(nouns, key=str.casefold)


SAMPLE = """\
# A heading, with `code`

[good](#a-heading-with-code) [bad](#nowhere) [worse](no-such-file.md) [out](https://example.invalid)

```console
$ cat > greeting.txt <<'EOF'
hello
EOF
$ cat greeting.txt
{said}
$ cat missing.txt
...
$ echo $?
1
```

```python
print(open("greeting.txt").read().upper())
```

```text
{shouted}
```
"""


def test_links_that_lead_nowhere_are_caught() -> None:
    assert broken_links("README.md", SAMPLE) == [
        "README.md: #nowhere: no such heading",
        "README.md: no-such-file.md: no such file",
    ]


@pytest.mark.parametrize(
    ("said", "shouted", "count"),
    [("hello", "HELLO", 0), ("h...o", "H...", 0), ("hullo", "HELLO", 1), ("hello", "HE", 1)],
)
def test_output_that_differs_is_caught(said: str, shouted: str, count: int, tmp_path: Path) -> None:
    text = SAMPLE.replace("{said}", said).replace("{shouted}", shouted)
    assert len(play(text, tmp_path)) == count


@pytest.mark.parametrize("seconds", ["    3.5", "  137.4", "12345.6"])
def test_a_number_may_be_wider_than_in_the_document(seconds: str) -> None:
    assert matches("match   984   ...  cost ...\n", f"match   984{seconds}  cost 7\n")
    assert not matches("match   984   ...  cost ...\n", f"match   985{seconds}  cost 7\n")


def test_a_command_that_fails_is_caught(tmp_path: Path) -> None:
    assert len(play("```console\n$ cat missing.txt\n```", tmp_path)) == 1


@pytest.mark.parametrize(
    ("text", "caught"),
    [
        ("see /home/ada/notes", True),
        ("see C:\\notes", True),
        ("see file:///notes", True),
        ("`GET /subscriptions/home/x`", False),
        ("docs/work/x and src/usr/bin", False),
    ],
)
def test_paths_of_a_machine_are_told_from_others(text: str, caught: bool) -> None:
    assert bool(MACHINE_PATH.search(text)) is caught
