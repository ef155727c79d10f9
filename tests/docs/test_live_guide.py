"""The guide to the running system has every setting and every option, as they are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.docs.test_documents import ROOT, first_column, run, section
from tests.settings_reference import rewritten

from distributary.network.config import read_config
from distributary.network.subjects import Subjects

GUIDE = (ROOT / "docs" / "live.md").read_text(encoding="utf-8")


def test_the_reference_is_what_the_code_has() -> None:
    """`python -m tests.settings_reference docs/live.md` brings it up to date."""
    assert rewritten(GUIDE) == GUIDE
    assert "`room_mib`" in section(GUIDE, "Settings")


@pytest.mark.parametrize(
    ("command", "heading"),
    [
        ("up", "One machine"),
        ("status", "How it is"),
        ("doctor", "When something is wrong"),
        ("broker", "Several machines"),
        ("backup", "Backup"),
        ("restore", "Restore"),
    ],
)
def test_the_guide_has_every_option_and_no_other(
    command: str, heading: str, tmp_path: Path
) -> None:
    text = run(["distributary", command, "--help"], tmp_path).stdout
    offered = set(re.findall(r"^ +(?:\* +)?(?:-\w, )?(--[a-z-]+)", text, re.M)) - {"--help"}
    described = {word for word in first_column(section(GUIDE, heading)) if word[:2] == "--"}
    assert described == offered


def test_the_example_of_a_configuration_can_be_read(tmp_path: Path) -> None:
    (found,) = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
    (tmp_path / "broker.toml").write_text(found)
    (tmp_path / "password").write_text("p")
    config = read_config(tmp_path / "broker.toml", {})
    assert len(config.broker.members) == 3


def test_the_subjects_are_those_of_the_code() -> None:
    named = Subjects("overlay")
    client = "@tenant@gateway/me"
    wanted = {
        "d.OVERLAY.b.TO.FROM": named.to_broker("TO", "FROM"),
        "d.OVERLAY.c.HOME.CLIENT": named.to_home("HOME", client),
        "d.OVERLAY.p.HOME.CLIENT": named.presence("HOME", client),
        "d.OVERLAY.i.CLIENT.HOME": named.to_client(client, "HOME"),
        "d.OVERLAY.h.TO.FROM": named.to_host("TO", "FROM"),
    }
    shown = first_column(section(GUIDE, "Who may say what"))
    assert shown == set(wanted)
    for pattern, subject in wanted.items():
        filled = pattern.replace("OVERLAY", "overlay").replace("CLIENT", "tenant.gateway.me")
        assert filled == subject
