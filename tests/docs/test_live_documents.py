"""Documents about a running overlay: what they say is run against a real one.

Blocks marked `live` are run, in order and in one folder, where `distributary up` runs: those of the
shell by one shell, so that what one sets the next has.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.test_documents import (
    ROOT,
    Block,
    blocks,
    commands,
    environment,
    first_column,
    matches,
    run,
    section,
)
from tests.live.overlays import RunningOverlay, running_overlay, wait_until
from tests.terminals import terminal

from distributary.media.samples import map_pdf

pytestmark = pytest.mark.slow

WAITS_S = 60.0
MARK = "~~~ %s"


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningOverlay]:
    state = tmp_path_factory.mktemp("home") / "distributary"
    with running_overlay(state, brokers=3) as running:
        yield running


def with_state(folder: Path) -> dict[str, str]:
    """Return the environment of somebody whose overlays are in a folder, and who set nothing."""
    given = environment(installed=True).items()
    kept = {k: v for k, v in given if not k.startswith("DISTRIBUTARY_")}
    return {**kept, "XDG_STATE_HOME": str(folder)}


def at_home(overlay: RunningOverlay) -> dict[str, str]:
    """Return the environment of somebody on the machine where an overlay runs."""
    return {
        **with_state(overlay.state.parent),
        "DISTRIBUTARY_URL": overlay.line["gateway"],
        "DISTRIBUTARY_TOKEN": overlay.line["token"],
    }


def play_shell(found: list[Block], folder: Path, env: dict[str, str]) -> list[str]:
    """Run the commands of several blocks in one shell; return what differs from what they say."""
    script = [command for block in found for command in commands(block)]
    lines = []
    for number, command in enumerate(script):
        lines += [command.text, f"printf '\\n{MARK} %s\\n' {number} $?"]
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    differences = []
    rest = done.stdout
    for number, command in enumerate(script):
        said, _, rest = rest.partition(f"\n{MARK % number} ")
        code, _, rest = rest.partition("\n")
        if code != "0" or not matches(command.expected, said):
            differences.append(f"line {command.line}: exit code {code}, printed\n{said}")
    return differences


def play_python(block: Block, expected: str, folder: Path, env: dict[str, str]) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", block.text],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode != 0 or not matches(expected, done.stdout):
        return [f"line {block.line}: python printed\n{done.stdout}{done.stderr}"]
    return []


@pytest.mark.parametrize("name", ["docs/client.md", "docs/gateway.md"])
def test_examples_run_and_print_what_the_document_says(
    name: str, overlay: RunningOverlay, tmp_path: Path
) -> None:
    found = blocks((ROOT / name).read_text(encoding="utf-8"))
    missing = [tool for tool in ("bash", "curl", "jq") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"the examples need {', '.join(missing)}, which this machine does not have")
    env = at_home(overlay)
    differences = []
    shell = []
    for index, block in enumerate(found):
        if block.language == "console live":
            shell.append(block)
        elif block.language == "python live":
            follower = found[index + 1] if index + 1 < len(found) else None
            expected = follower.text if follower and follower.language == "text" else ""
            differences += play_python(block, expected, tmp_path, env)
    differences += play_shell(shell, tmp_path, env)
    assert not differences, "\n".join(differences)
    assert shell


@pytest.mark.parametrize(
    ("command", "heading"),
    [("publish", "The command `publish`"), ("subscribe", "The command `subscribe`")],
)
def test_the_guide_has_every_option_and_no_other(
    command: str, heading: str, tmp_path: Path
) -> None:
    text = run(["distributary", command, "--help"], tmp_path).stdout
    offered = set(re.findall(r"^ +(?:\* +)?(?:-\w, )?(--[a-z-]+)", text, re.M)) - {"--help"}
    guide = section((ROOT / "docs" / "client.md").read_text(encoding="utf-8"), heading)
    described = {word for word in first_column(guide) if word.startswith("--")}
    assert offered
    assert described == offered


def test_five_commands_of_the_readme_lead_to_a_picture(tmp_path: Path) -> None:
    """In three terminals, as a reader has them; the last command is Ctrl-C."""
    text = section((ROOT / "README.md").read_text(encoding="utf-8"), "A first picture")
    start, subscribe, publish, look = [
        line
        for block in blocks(text)
        if block.language == "sh live"
        for line in block.text.splitlines()
    ]
    (tmp_path / "map.pdf").write_bytes(map_pdf())
    env = with_state(tmp_path / "home")
    with terminal(start, tmp_path, env) as overlay:
        overlay.wait_for("Ctrl-C stops everything.")
        with terminal(subscribe, tmp_path, env) as subscriber:
            subscriber.wait_for("waiting for events")
            with terminal(publish, tmp_path, env) as publisher:
                assert publisher.process.wait(WAITS_S) == 0, publisher.shown
            subscriber.wait_for("pictures/map.jpg")
            done = subprocess.run(
                ["bash", "-c", look], cwd=tmp_path, capture_output=True, text=True, check=True
            )
            assert done.stdout.split() == ["map.jpg"]
            differences = [
                difference
                for block in blocks(text)
                if block.language == "python live"
                for difference in play_python(block, "pictures/map-...jpg", tmp_path, env)
            ]
            assert differences == []
            # Whoever is first has the second picture.
            wait_until(lambda: "pictures/map-" in subscriber.shown)
            assert subscriber.end() == 0
        assert overlay.end() == 0
    for picture in ("map.jpg", "map-2.jpg", "map-3.jpg"):
        assert (tmp_path / "pictures" / picture).read_bytes()[:3] == b"\xff\xd8\xff"
