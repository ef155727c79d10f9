"""Lines on standard error: for people, or as JSON with the names of publications."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from distributary.broker.telemetry import Delivered, Planned, Refined, Worth
from distributary.network.logs import log_to_stderr
from distributary.network.witness import Witness


@pytest.fixture(autouse=True)
def loggers() -> Iterator[None]:
    """Leave logging as it was."""
    root, ours = logging.getLogger(), logging.getLogger("distributary")
    before = (list(root.handlers), root.level, ours.level)
    yield
    root.handlers[:], root.level = before[0], before[1]
    ours.setLevel(before[2])


def test_people_get_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DISTRIBUTARY_LOG", raising=False)
    log_to_stderr("abcd")
    logging.getLogger("distributary.x").warning("it is %s", "late")
    logging.getLogger("distributary.x").debug("nobody wants to know")
    assert capsys.readouterr().err.endswith(" abcd WARNING it is late\n")


def test_programs_get_json_with_the_name_of_the_publication(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISTRIBUTARY_LOG", "json debug")
    log_to_stderr("abcd")
    witness = Witness(lambda: 0)
    worth = Worth(1.0, 2.0, 3.0)
    witness.reported(Planned("/maps", "1", 3, "planned", worth, None, None, "north"))
    witness.reported(Refined("/maps", "1", "north"))
    witness.reported(Delivered("@north@one", "all", 7, "/maps", "1", "image/jpeg"))
    try:
        raise ValueError("a\nb")
    except ValueError:
        logging.getLogger("distributary.x").exception("it failed")
    *about, failed = map(json.loads, capsys.readouterr().err.splitlines())
    assert len(about) == 3
    for one in about:
        assert (one["tenant"], one["source"], one["id"]) == ("north", "/maps", "1")
        assert (one["by"], one["level"]) == ("abcd", "debug")
    assert "image/jpeg" in about[2]["message"]
    assert failed["message"] == "it failed"
    assert "ValueError" in failed["error"]
    assert "source" not in failed
