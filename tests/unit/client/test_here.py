"""The gateway is the one that was named, that of the environment, or that of this machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from distributary.client.failure import RequestRefused, problem_sentence
from distributary.client.here import Address, find_gateway
from distributary.errors import BadInput

HERE = "http://127.0.0.1:8480"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    (tmp_path / "operator.json").write_text(json.dumps({"gateway": HERE, "token": "of-here"}))
    return tmp_path


def test_the_overlay_of_this_machine_is_found(state: Path) -> None:
    assert find_gateway(state=state, environment={}) == Address(HERE, "of-here")


def test_what_is_given_counts_most(state: Path) -> None:
    environment = {"DISTRIBUTARY_URL": "https://b.example/x/", "DISTRIBUTARY_TOKEN": "b"}
    given = find_gateway("https://a.example", "a", state=state, environment=environment)
    assert given == Address("https://a.example", "a")
    assert find_gateway(environment=environment) == Address("https://b.example/x", "b")
    # A folder that is named has a gateway and a token of its own.
    assert find_gateway(state=state, environment=environment) == Address(HERE, "of-here")


def test_a_token_of_the_environment_goes_to_the_overlay_here(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = state / "distributary"
    home.mkdir()
    (state / "operator.json").rename(home / "operator.json")
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    assert find_gateway(environment={"DISTRIBUTARY_TOKEN": "mine"}) == Address(HERE, "mine")
    assert find_gateway(environment={}) == Address(HERE, "of-here")


def test_the_token_of_this_machine_goes_nowhere_else(state: Path) -> None:
    assert find_gateway("https://a.example", state=state, environment={}).token is None
    assert find_gateway(f"{HERE}/", state=state, environment={}) == Address(HERE, "of-here")


def test_a_token_is_not_shown(state: Path) -> None:
    assert "of-here" not in repr(find_gateway(state=state, environment={}))


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"gateway": null, "token": null}'])
def test_where_nothing_runs_one_sentence_says_what_to_do(tmp_path: Path, text: str) -> None:
    (tmp_path / "operator.json").write_text(text)
    with pytest.raises(BadInput, match="has no gateway that runs; hint: distributary up"):
        find_gateway(state=tmp_path, environment={})


@pytest.mark.parametrize(
    "url",
    ["localhost:8480", "ftp://a", "http://", "http://a:x", "http://a?b=c", "http://[", "a b"],
)
def test_what_is_no_url_is_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is no gateway"):
        find_gateway(url, state=tmp_path, environment={})


def test_secrets_in_a_url_are_refused_and_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        find_gateway("https://me:geheim@a.example", state=tmp_path, environment={})
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize("token", ["a b", "a\nb", "ü"])
def test_a_token_that_no_header_can_have_is_refused(token: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is no token") as caught:
        find_gateway(HERE, token, state=tmp_path, environment={})
    assert token not in str(caught.value)


def test_a_token_goes_in_clear_text_to_this_machine_alone(tmp_path: Path) -> None:
    def found(url: str, **environment: str) -> str:
        return find_gateway(url, "t", state=tmp_path, environment=environment).url

    for here in ("http://localhost:1", "http://127.0.0.9", "http://[::1]:5"):
        assert found(here) == here
    for away in ("http://10.0.0.1", "http://gateway", "http://127.0.0.1.example"):
        with pytest.raises(BadInput, match="clear text"):
            found(away)
        assert found(away, DISTRIBUTARY_CLEAR_TEXT="1") == away
    assert find_gateway("http://gateway", state=tmp_path, environment={}).token is None


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b'{"detail": "type: is missing", "title": "Bad Request"}', "type: is missing"),
        (b'{"title": "Not\\nFound\\u0007"}', "Not Found?"),
        (b"<html>", "status 502 without a reason"),
        (b"[]", "status 502 without a reason"),
        (b"\xff", "status 502 without a reason"),
        (b'{"detail": "' + b"x" * 9000 + b'"}', "x" * 500),
    ],
)
def test_a_problem_is_one_sentence(body: bytes, sentence: str) -> None:
    assert problem_sentence(body, 502) == sentence
    assert RequestRefused(502, sentence).status == 502
