"""`distributary token` and `distributary tenant`, as a person uses them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator

import httpx
import pytest
from tests.commands import check_one_line, run
from tests.live.gateways import WAIT_S, Http, event
from tests.live.overlays import RunningOverlay, running_overlay

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningOverlay]:
    with running_overlay(tmp_path_factory.mktemp("command") / "state", brokers=1) as overlay:
        yield overlay


def token(
    overlay: RunningOverlay, *arguments: str, caller: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command, for the overlay here or as somebody with a token."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DISTRIBUTARY_")}
    if caller is None:
        return run(*arguments, "--state", str(overlay.state), env=environment)
    environment["DISTRIBUTARY_TOKEN"] = caller
    return run(*arguments, "--url", overlay.line["gateway"], env=environment)


def test_a_token_is_the_last_word_and_does_what_it_says(overlay: RunningOverlay) -> None:
    made = token(
        overlay,
        *("token", "create", "camera", "--scope", "publish,subscribe", "--source", "/site/7/"),
        *("--source", "urn:x:", "--tenant", "north", "--expires", "30d"),
    )
    assert made.returncode == 0, made.stderr
    secret = made.stdout.split()[-1]
    with Http(overlay.line["gateway"], secret) as http:
        assert http.publish(event("/site/7/a", 1, "t")).status_code == 202
        assert http.publish(event("/site/8/a", 1, "t")).status_code == 403
        assert http.get("/session").json()["tenant"] == "north"
        assert http.get("/tokens").status_code == 403
        listed = token(overlay, "token", "list")
        assert secret not in listed.stdout
        (row,) = [line for line in listed.stdout.splitlines() if line.startswith("camera ")]
        assert row.split()[:4] == ["camera", "north", "publish,subscribe", "/site/7/,urn:x:"]
        told = json.loads(token(overlay, "token", "list", "--json").stdout)
        assert {one["name"] for one in told} == {"camera", "up"}
        check_one_line(
            *answered(token(overlay, "token", "revoke", "camera")), "there is no token camera"
        )
        assert token(overlay, "token", "revoke", "camera", "--tenant", "north").returncode == 0
        assert http.get("/session").status_code == 401


def answered(done: subprocess.CompletedProcess[str]) -> tuple[int, str, str]:
    return done.returncode, done.stdout, done.stderr


def test_an_administrator_elsewhere_calls_by_its_own_token(overlay: RunningOverlay) -> None:
    made = token(
        overlay, "token", "create", "boss", "--scope", "admin", "--tenant", "west"
    ).stdout.split()[-1]
    one = token(overlay, "token", "create", "worker", "--scope", "publish", caller=made)
    assert one.returncode == 0, one.stderr
    listed = token(overlay, "token", "list", "--json", caller=made)
    assert {row["tenant"] for row in json.loads(listed.stdout)} == {"west"}
    refused = token(
        overlay, "token", "create", "x", "--scope", "admin", "--tenant", "east", caller=made
    )
    check_one_line(*answered(refused), "admin")
    check_one_line(*answered(token(overlay, "token", "list", caller="wrong")), "not valid")


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (("--scope", "publish", "--source", "x" * 513), "source"),
        (("--scope", "all"), "scope"),
        (("--scope", ""), "scope"),
        (("--scope", "publish", "--expires", "soon"), "--expires"),
        (("--scope", "publish", "--tenant", "North!"), "tenant"),
    ],
)
def test_bad_input_is_one_sentence(
    overlay: RunningOverlay, arguments: tuple[str, ...], place: str
) -> None:
    check_one_line(*answered(token(overlay, "token", "create", "bad", *arguments)), place)


def test_a_link_for_a_browser_works_once(overlay: RunningOverlay) -> None:
    link = token(overlay, "token", "login").stdout.strip()
    assert link.startswith(f"{overlay.line['gateway']}/login/")
    assert [httpx.get(link, timeout=WAIT_S).status_code for _ in range(2)] == [303, 403]


def test_a_tenant_is_erased_by_a_command_that_asks(overlay: RunningOverlay) -> None:
    made = token(overlay, "token", "create", "a", "--scope", "subscribe", "--tenant", "gone")
    with Http(overlay.line["gateway"], made.stdout.split()[-1]) as http:
        http.subscribe({"types": ["t"]})
        assert token(overlay, "tenant", "erase", "gone").returncode != 0
        assert http.get("/session").status_code == 200
        erased = token(overlay, "tenant", "erase", "gone", "--yes")
        assert "1 subscriptions and 1 tokens of gone are erased" in erased.stdout
        assert http.get("/session").status_code == 401
