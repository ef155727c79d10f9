"""Where the gateway is: the one that is named, that of the environment, or that of this machine."""

from __future__ import annotations

import ipaddress
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from distributary.errors import BadInput, quoted

__all__ = ["Address", "default_state", "find_gateway", "is_here"]

CLEAR_TEXT = "DISTRIBUTARY_CLEAR_TEXT"
TOKEN = "DISTRIBUTARY_TOKEN"  # noqa: S105, the name of a variable
URL = "DISTRIBUTARY_URL"


@dataclass(frozen=True)
class Address:
    """A gateway and how it lets us in.

    Attributes
    ----------
    url
        Without a slash at its end.
    token
        Never shown, not by `repr` either.
    """

    url: str
    token: str | None = field(default=None, repr=False)


def default_state() -> Path:
    """Return the folder of an overlay that nobody has named."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "distributary"


def find_gateway(
    url: str | None = None,
    token: str | None = None,
    *,
    state: Path | None = None,
    clear_text: bool = False,
    environment: Mapping[str, str] = os.environ,
) -> Address:
    """Return where to go.

    What is given counts most, a URL or the folder of an overlay; then `DISTRIBUTARY_URL` and
    `DISTRIBUTARY_TOKEN`; then what `distributary up` runs on this machine. The token of that
    overlay is for that overlay: a URL that leads elsewhere never gets it.

    Raises
    ------
    BadInput
        When there is none, when it is no URL, or when a token would go to another machine in
        clear text, unless `clear_text` or `DISTRIBUTARY_CLEAR_TEXT` allows that.
    """
    place = "url"
    if state is not None and not url:
        # What the environment says is of another gateway.
        environment = {}
    elif not url:
        place, url = URL, environment.get(URL)
    token = token or environment.get(TOKEN) or None
    if token is not None and not (token.isascii() and token.isprintable() and " " not in token):
        raise BadInput(TOKEN, "is no token: it has spaces, or characters that no header can have")
    state = default_state() if state is None else state
    here = _running(state)
    if not url:
        if here is None:
            raise BadInput(
                str(state),
                "has no gateway that runs",
                hint=f"distributary up starts one, and --url or {URL} names another",
            )
        return Address(here.url, token or here.token)
    url = url.rstrip("/")
    if token is None and here is not None and here.url == url:
        token = here.token
    _check(place, url, secret=token is not None, clear_text=clear_text, environment=environment)
    return Address(url, token)


def _running(state: Path) -> Address | None:
    """Return the gateway of the overlay that runs in a folder."""
    try:
        said = json.loads((state / "operator.json").read_bytes())
        url, token = said["gateway"], said["token"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Address(url, token) if isinstance(url, str) and isinstance(token, str) else None


def _check(
    place: str, url: str, *, secret: bool, clear_text: bool, environment: Mapping[str, str]
) -> None:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise BadInput(
            place, f"{quoted(url)} is no gateway", hint="write it as in 'http://127.0.0.1:8480'"
        )
    if parts.username is not None:
        raise BadInput(place, "has a name or a password in it", hint=f"{TOKEN} has the token")
    allowed = clear_text or environment.get(CLEAR_TEXT, "") not in ("", "0")
    if secret and parts.scheme == "http" and not is_here(host) and not allowed:
        raise BadInput(
            place,
            f"{quoted(url)} would send the token in clear text to another machine",
            hint=f"use https, or set {CLEAR_TEXT}=1 where the network is trusted",
        )


def is_here(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
