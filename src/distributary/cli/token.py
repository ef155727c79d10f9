"""`distributary token` and `distributary tenant`: who may do what at a gateway."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from urllib.parse import quote

import typer

from distributary.arguments import check_choice
from distributary.cli.gateway_options import State, Url
from distributary.cli.output import print_aligned
from distributary.errors import BadInput, quoted

__all__ = ["app", "tenants"]

_CREATE_EXAMPLES = """\
\b
Examples:
  distributary token create camera --scope publish --source /site/7
  distributary token create reader --scope subscribe --tenant north --expires 30d
"""
_LIST_EXAMPLES = """\
\b
Examples:
  distributary token list
  distributary token list --url https://gateway.example --json
"""
_REVOKE_EXAMPLES = """\
\b
Examples:
  distributary token revoke camera
  distributary token revoke reader --tenant north
"""
_LOGIN_EXAMPLES = "\b\nExamples:\n  distributary token login\n"
_ERASE_EXAMPLES = "\b\nExamples:\n  distributary tenant erase north --yes\n"
_EXAMPLES = """\
\b
Examples:
  distributary token create camera --scope publish --source /site/7
  distributary token list
  distributary token revoke camera
  distributary token login
"""

# As `SCOPES` of the gateway, which a client does without.
_SCOPES = ("publish", "subscribe", "admin")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_DURATION = re.compile(r"([1-9][0-9]{0,8})([smhdw])")
_PATIENCE_S = 10.0

app = typer.Typer(
    help="Make, list and revoke tokens of a gateway.",
    epilog=_EXAMPLES,
    no_args_is_help=True,
    short_help="Say who may do what at a gateway.",
)
tenants = typer.Typer(
    help="Erase what there is of a tenant.",
    epilog=_ERASE_EXAMPLES,
    no_args_is_help=True,
    short_help="Erase a tenant.",
)

Tenant = Annotated[
    str | None, typer.Option(metavar="T", help="Whose token it is; the caller's unless given.")
]


@app.command(short_help="Make a token; the last word that is printed.", epilog=_CREATE_EXAMPLES)
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is called.")],
    scope: Annotated[
        list[str], typer.Option(metavar="SCOPE,...", help="Of publish, subscribe and admin.")
    ],
    source: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PREFIX",
            help="What sources of its events begin with, by whole parts; any unless given.",
        ),
    ] = None,
    tenant: Tenant = None,
    expires: Annotated[
        str | None,
        typer.Option(metavar="D", help="As in 12h, 30d, or 2030-01-31T12:00:00Z; never if not."),
    ] = None,
    url: Url = None,
    state: State = None,
) -> None:
    """Make a token for somebody, and print it. Nobody can see it again."""
    scopes = [part.strip() for text in scope for part in text.split(",")]
    for one in scopes:
        check_choice("--scope", one, _SCOPES)
    asked: dict[str, Any] = {
        "name": name,
        "scopes": scopes,
        "sources": source or None,
        "tenant": tenant,
        "expires": None if expires is None else expiry(expires, datetime.now(UTC)).isoformat(),
    }
    made = _ask(url, state, "POST", "/tokens", asked)
    print(made["token"])


@app.command("list", short_help="List tokens.", epilog=_LIST_EXAMPLES)
def list_(
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    url: Url = None,
    state: State = None,
) -> None:
    """List what tokens permit; the tokens themselves nobody knows."""
    told = _ask(url, state, "GET", "/tokens")["tokens"]
    if as_json:
        print(json.dumps(told))
        return
    rows = [("name", "tenant", "scopes", "sources", "expires")]
    for one in told:
        sources = ",".join(one["sources"]) or "any"
        expires = one.get("expires") or "never"
        rows.append((one["name"], one["tenant"] or "-", ",".join(one["scopes"]), sources, expires))
    print_aligned(rows)


@app.command(short_help="Revoke a token.", epilog=_REVOKE_EXAMPLES)
def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is called.")],
    tenant: Tenant = None,
    url: Url = None,
    state: State = None,
) -> None:
    """End a token, and all that is connected by it."""
    query = "" if tenant is None else f"?tenant={quote(tenant, safe='')}"
    _ask(url, state, "DELETE", f"/tokens/{quote(name, safe='')}{query}")


@app.command(short_help="Print a link by which a browser logs in once.", epilog=_LOGIN_EXAMPLES)
def login(url: Url = None, state: State = None) -> None:
    """Print a link that works once, and lets a browser do what your token permits."""
    from distributary.client.here import find_gateway

    path = _ask(url, state, "POST", "/login")["login"]
    print(find_gateway(url, state=state).url + path)


@tenants.command(short_help="Erase a tenant.", epilog=_ERASE_EXAMPLES)
def erase(
    name: Annotated[str, typer.Argument(metavar="TENANT", help="What it is called.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    url: Url = None,
    state: State = None,
) -> None:
    """End the subscriptions and tokens of a tenant, and forget what it has published."""
    if not yes:
        if sys.stdin is None or not sys.stdin.isatty():
            raise BadInput("--yes", "is missing, and there is nobody to ask")
        typer.confirm(f"Erase all that is of tenant {name}?", abort=True, err=True)
    told = _ask(url, state, "DELETE", f"/tenants/{quote(name, safe='')}")
    print(
        f"{told['subscriptions']} subscriptions and {told['tokens']} tokens of {name} are erased; "
        f"brokers forget what it published within {told['forgotten_s']:g} s"
    )


def expiry(text: str, now: datetime) -> datetime:
    """Return when something ends, by a time from now or a date."""
    found = _DURATION.fullmatch(text)
    try:
        if found:
            return now + timedelta(seconds=int(found[1]) * _UNITS[found[2]])
        at = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise BadInput(
            "--expires", f"{quoted(text)} is no time", hint="write 12h, 30d or 2030-01-31"
        ) from None
    # A date alone is one of universal time.
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
    if at <= now:
        raise BadInput("--expires", f"{quoted(text)} is over already")
    return at


def _ask(
    url: str | None, state: State, method: str, path: str, asked: dict[str, Any] | None = None
) -> Any:
    """Return what the gateway answers, or raise an error in one sentence."""
    from distributary.client.failure import RequestRefused
    from distributary.client.gateway import Gateway
    from distributary.client.here import find_gateway

    address = find_gateway(url, state=state)

    async def run() -> bytes:
        gateway = Gateway(address, patience_s=_PATIENCE_S)
        try:
            given: dict[str, Any] = {} if asked is None else {"json": asked}
            return (await gateway.ask(method, path, **given)).content
        finally:
            await gateway.close()

    try:
        answer = asyncio.run(run())
    except RequestRefused as error:
        raise BadInput(address.url, error.reason) from None
    return json.loads(answer) if answer else None
