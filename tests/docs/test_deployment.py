"""The examples of deployment are what the code takes and what the guide says."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from tests.docs.test_documents import ROOT

from distributary.errors import MissingPackage
from distributary.network.config import read_config
from distributary.network.process import STOPPED
from distributary.network.server import server_program, users_of
from distributary.network.subjects import Subjects

DEPLOY = ROOT / "deploy"


def test_the_configuration_can_be_read(tmp_path: Path) -> None:
    for name in ("password", "authority.pem"):
        (tmp_path / name).write_text("p")
    (tmp_path / "broker.toml").write_text((DEPLOY / "broker.toml").read_text())
    config = read_config(tmp_path / "broker.toml", {})
    assert str(config.folder) == "/var/lib/distributary"
    unit = (DEPLOY / "distributary-broker.service").read_text()
    assert f"RestartPreventExitStatus={STOPPED}\n" in unit


def test_everybody_may_say_what_the_code_says(tmp_path: Path) -> None:
    text = (DEPLOY / "nats.conf").read_text()
    members = read_config_members()
    users = users_of(Subjects("main"), members, gateways=["gateway"], operators=["operator"])
    for user in users.values():
        for subject in (*user.publish, *user.subscribe):
            assert f'"{subject}"' in text
    assert set(re.findall(r'user: "(\w+)"', text)) == users.keys()
    try:
        program = server_program()
    except MissingPackage as error:
        pytest.skip(str(error))
    # The certificates are the only thing that it does not have here.
    path = tmp_path / "nats.conf"
    path.write_text(re.sub(r"tls \{.*?\n\}\n", "", text, flags=re.DOTALL))
    passwords = dict.fromkeys(re.findall(r"\$(\w+)", text), "p")
    command = [str(program), "-c", str(path), "-t"]
    result = subprocess.run(
        command, env=passwords, capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode == 0, result.stderr


def read_config_members() -> list[str]:
    found = re.search(r"members = \[(.*)\]", (DEPLOY / "broker.toml").read_text())
    assert found is not None
    return [name.strip(' "') for name in found[1].split(",")]
