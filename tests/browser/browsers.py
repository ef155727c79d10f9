"""A real browser: Debian's Chromium, which is told to ask nobody but the gateway."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.live.gateways import Http

__all__ = ["Tab", "opened_browser"]

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_WAIT_MS = 60_000
_AXE = Path(__file__).parent / "vendor" / "axe.min.js"


class Tab:
    """A page of the console, and everything that goes wrong in it.

    Attributes
    ----------
    faults
        What the page has written to its console as warnings and errors.
    """

    def __init__(self, page: Any, http: Http) -> None:
        self.page = page
        self.http = http
        self.faults: list[str] = []
        self.requests: list[Any] = []
        page.set_default_timeout(_WAIT_MS)
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("request", lambda request: self.requests.append(request))

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(message.text)

    def log_in(self) -> None:
        """Come in by a link that works once."""
        login = self.http.post("/login").json()["login"]
        self.page.goto(f"{self.http.url}{login}")
        self.page.wait_for_selector(".link-state.on")

    def open(self, path: str = "/") -> None:
        """Go to a view."""
        self.page.goto(f"{self.http.url}/console#{path}")
        self.page.wait_for_selector("main h1")

    def violations(self, *rules: str) -> list[str]:
        """What keeps people from using the page, of what a program can find; all, or by rules."""
        self.page.evaluate(_AXE.read_text(encoding="utf-8"))
        options = {"runOnly": list(rules)} if rules else {}
        found = self.page.evaluate("options => axe.run(options)", options)["violations"]
        return [
            f"{one['id']}: {node['html']}: {node['failureSummary']}"
            for one in found
            if one["impact"] in ("serious", "critical")
            for node in one["nodes"]
        ]

    def check(self) -> None:
        """Raise unless all has gone well, and nobody else was asked for anything.

        The browser also tells of requests that it refused to make because of the page's policy.
        """
        assert not self.faults, self.faults
        begin = re.compile(rf"{re.escape(self.http.url)}/|(blob|data|about):")
        asked = [one.url for one in self.requests if one.failure != "csp"]
        elsewhere = [one for one in asked if not begin.match(one)]
        assert not elsewhere, elsewhere


@contextmanager
def opened_browser() -> Iterator[Any]:
    """Start a browser; skip the tests where there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if program is None:
        pytest.skip("there is no Chromium; hint: make browser")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(_OPTIONS))
        yield browser
        browser.close()
