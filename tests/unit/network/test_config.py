"""Configurations: TOML and environment by the same names, secrets in neither's clear text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from distributary.errors import BadInput
from distributary.network.config import Config, read_config

IN_FILE, GIVEN = "from the file", "from the environment"
LEAST = '[broker]\nidentity = "0a0b"\n'


def read(folder: Path, text: str, **environment: str) -> Config:
    path = folder / "broker.toml"
    path.write_text(text)
    return read_config(path, environment)


def test_the_least_that_must_be_said(tmp_path: Path) -> None:
    config = read(tmp_path, LEAST)
    assert config.broker.identity == "0a0b"
    assert config.folder == tmp_path
    assert config.server.urls == ("nats://127.0.0.1:4222",)
    assert config.surroundings().members == ()
    assert '"application/pdf"' in config.settings.graph


@pytest.mark.parametrize(
    ("graph", "conversions"),
    [("default", 254), ("map", 110), ("video", 144), ("all", 331), ("none", 0)],
)
def test_a_graph_is_named_by_what_shall_be_converted(
    graph: str, conversions: int, tmp_path: Path
) -> None:
    """Whoever says nothing gets maps and videos alone: more would change what `*/*` is sent."""
    config = read(tmp_path, f'{LEAST}graph = "{graph}"\n')
    assert len(json.loads(config.settings.graph)["conversions"]) == conversions


def test_a_file_says_everything_and_the_environment_has_the_last_word(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"{IN_FILE}\n")
    text = """
        [broker]
        identity = "0a0b"
        overlay = "east"
        state = "there"
        members = ["0a0b", "0c0d"]
        graph = "none"
        [nats]
        urls = ["tls://a.example:4222"]
        user = "me"
        password_file = "secret"
        [converters]
        workers = 3
        memory_mib = 100
        [settings.membership]
        period_s = 1
        """
    config = read(tmp_path, text)
    assert config.folder == tmp_path / "there"
    assert config.server.password == IN_FILE
    limits = config.converters.limits(5_000)
    assert (limits.memory_bytes, limits.input_bytes) == (100 * 2**20, 5_000)
    assert config.settings.membership.period_s == 1.0
    (neighbour,) = config.surroundings().neighbours
    assert neighbour.identity == "0c0d"
    other = read(
        tmp_path,
        text,
        DISTRIBUTARY_NATS_URLS="tls://b.example:1, tls://c.example:2",
        DISTRIBUTARY_NATS_PASSWORD=GIVEN,
        DISTRIBUTARY_CONVERTERS_WORKERS="5",
        DISTRIBUTARY_BROKER_CONTACT="0c0d",
    )
    assert other.server.urls == ("tls://b.example:1", "tls://c.example:2")
    assert other.server.password == GIVEN
    assert other.converters.workers == 5
    assert other.surroundings().contact == "0c0d"


def test_no_password_is_shown(tmp_path: Path) -> None:
    config = read(tmp_path, LEAST, DISTRIBUTARY_NATS_PASSWORD=GIVEN)
    assert config.server.password == GIVEN
    assert GIVEN not in repr(config)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "broker.identity: is missing"),
        ("[broker", "is not TOML"),
        ('[broker]\nidentity = "xyz"', "is not made of 3 lower-case hexadecimal"),
        ('[broker]\nidentity = "0a"\nmembers = ["0b"]', "does not have '0a' itself"),
        ('[broker]\nidentity = "0a"\ncontact = "0"', "is not made of 2"),
        ('[broker]\nidentity = "0a"\noverlay = "a.b"', "small letters"),
        (LEAST + "[extra]\n", "is not a table of a configuration"),
        (LEAST + "nats = 3\n", "nats"),
        (LEAST + '[nats]\npassword = "p"', "does not belong into a configuration"),
        (LEAST + '[nats]\nurls = ["nats://a.example:4222"]', "clear text"),
        (LEAST + '[nats]\nurls = ["nats://u:p@127.0.0.1:4222"]', "has a password in it"),
        (LEAST + '[nats]\nurls = ["http://127.0.0.1"]', "hint: write nats://HOST:PORT"),
        (LEAST + "[nats]\nurls = []", "is empty"),
        (LEAST + '[nats]\npassword_file = "nowhere"', "nowhere"),
        (LEAST + "[converters]\nworkers = 0", "must be from 1 to 1,024"),
        (LEAST + "[settings.membership]\nperiod_s = 0", "must be at least 0.001"),
        (LEAST + "[settings.nothing]\n", "is not a group of settings"),
        (LEAST + 'graph = "nowhere.json"', "nowhere.json"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(BadInput) as caught:
        read(tmp_path, text)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "broker.toml" in str(caught.value)


def test_a_bad_word_in_the_environment_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="DISTRIBUTARY_CONVERTERS_WORKERS"):
        read(tmp_path, LEAST, DISTRIBUTARY_CONVERTERS_WORKERS="many")


def test_another_machine_is_spoken_to_in_clear_text_if_one_must(tmp_path: Path) -> None:
    text = LEAST + '[nats]\nurls = ["nats://a.example:4222"]\nclear_text = true'
    assert read(tmp_path, text).server.urls == ("nats://a.example:4222",)
