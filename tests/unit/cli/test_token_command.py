"""What a token permits and when it ends, as people write it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.commands import check_one_line

from distributary.cli import main
from distributary.cli.token import _SCOPES, expiry
from distributary.errors import BadInput
from distributary.network.gateway.tokens import SCOPES

NOW = datetime(2027, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("5m", 300), ("12h", 43_200), ("30d", 2_592_000), ("2w", 1_209_600)],
)
def test_a_time_from_now(text: str, seconds: int) -> None:
    assert expiry(text, NOW) == NOW + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2030-01-31", datetime(2030, 1, 31, tzinfo=UTC)),
        ("2030-01-31T12:00:00Z", datetime(2030, 1, 31, 12, tzinfo=UTC)),
        ("2030-01-31T12:00:00+02:00", datetime(2030, 1, 31, 10, tzinfo=UTC)),
    ],
)
def test_a_date(text: str, at: datetime) -> None:
    assert expiry(text, NOW) == at


@pytest.mark.parametrize(
    "text",
    ["", "0d", "-1d", "1", "d", "1y", "1 d", "999999999w", "tomorrow", "2030-13-01", "2026-12-31"],
)
def test_what_is_no_time_to_come_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="--expires"):
        expiry(text, NOW)


def test_a_scope_that_there_is_not_is_refused_before_anybody_is_asked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _SCOPES == SCOPES
    code = main(["token", "create", "camera", "--scope", "publish,fly"])
    told = "--scope: 'fly' is not one of publish, subscribe, admin"
    check_one_line(code, *capsys.readouterr(), told)


def test_what_cannot_be_undone_is_not_done_when_nobody_can_be_asked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = main(["tenant", "erase", "north"])
    check_one_line(code, *capsys.readouterr(), "--yes: is missing")
