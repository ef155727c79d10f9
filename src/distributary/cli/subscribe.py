"""`distributary subscribe`: events as they come, as lines or as files."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from distributary.cli.gateway_options import State, Url, gateway_connection, run_until_told
from distributary.cli.progress import StatusLine
from distributary.errors import BadInput, counted, quoted
from distributary.files import writing

if TYPE_CHECKING:
    from distributary.client.delivery import Delivery

__all__ = ["EXAMPLES", "subscribe"]

EXAMPLES = """\
\b
Examples:
  distributary subscribe --filter "type = 'map.published'"
  distributary subscribe --accept image/jpeg --screen 1280x720 --save-to pictures
  distributary subscribe --filter '{"prefix": {"source": "/maps"}}' --accept audio/mpeg --save-to .
  distributary subscribe --filter "type = 'price'" --tolerance "/price absolute 0.5"
  distributary subscribe --keep --count 1
"""


def subscribe(
    filter: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILTER",
            help="A CESQL expression, or a filter as JSON; all must hold. Everything unless given.",
        ),
    ] = None,
    accept: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MEDIA_TYPE",
            help="A format that can be used, best first. As published unless given.",
        ),
    ] = None,
    screen: Annotated[
        str | None, typer.Option(metavar="WIDTHxHEIGHT", help="Pictures no larger than this.")
    ] = None,
    bandwidth: Annotated[
        float | None, typer.Option(metavar="KBPS", help="Sound and video of no more.")
    ] = None,
    tolerance: Annotated[
        str | None,
        typer.Option(
            metavar="'POINTER KIND AMOUNT'",
            help="How far a copy of a stream may be off, as in '/price absolute 0.5'.",
        ),
    ] = None,
    save_to: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Save content as files, and print their names."),
    ] = None,
    count: Annotated[int | None, typer.Option(min=1, help="End after so many events.")] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Let the subscription wait for --id when this ends.")
    ] = False,
    id: Annotated[
        str | None, typer.Option(metavar="ID", help="Go on with a subscription that was kept.")
    ] = None,
    url: Url = None,
    state: State = None,
) -> None:
    """Get events by way of a gateway until Ctrl-C, each acknowledged when it is written.

    Prints a line of JSON per event, or with --save-to the name of each file. No file is
    replaced. Goes on by itself after a break. DISTRIBUTARY_TOKEN is the token.
    """
    wanted = {
        "filters": [_filter(text) for text in filter or []],
        "accept": accept or None,
        "screen": screen,
        "bandwidth_kbps": bandwidth,
        "tolerance": None if tolerance is None else _tolerance(tolerance),
        "id": id,
        "keep": keep,
    }
    if save_to is not None:
        with writing(save_to, "--save-to"):
            save_to.mkdir(parents=True, exist_ok=True)
    line = StatusLine()
    try:
        run_until_told(lambda: _subscribe(url, state, wanted, save_to, count, line))
    finally:
        line.show("")


async def _subscribe(
    url: str | None,
    state: Path | None,
    wanted: dict[str, Any],
    save_to: Path | None,
    count: int | None,
    line: StatusLine,
) -> None:
    done = 0
    line.show("connecting")
    async with (
        gateway_connection(url, state, patience_s=math.inf) as gateway,
        gateway.subscribe(**wanted) as subscription,
    ):
        if wanted["keep"] and wanted["id"] is None:
            line.show("")
            print(f"subscription {subscription.id} is kept", file=sys.stderr)
        line.show("waiting for events; Ctrl-C ends it")
        async for delivery in subscription:
            line.show(f"{counted(delivery.size_bytes, 'byte')} of {quoted(delivery.id)}")
            text = await _written(delivery, save_to, line)
            line.show("")
            if text is not None:
                print(text, flush=True)
            done += 1
            if done == count:
                delivery.acknowledge()
                break
            line.show(f"{counted(done, 'event')}; Ctrl-C ends it")


async def _written(delivery: Delivery, save_to: Path | None, line: StatusLine) -> str | None:
    """Return what is printed of an event, once its content is saved if it is to be."""
    if save_to is None:
        return json.dumps(delivery.publication.document())
    if delivery.undeliverable is None and delivery.size_bytes:
        return str(await delivery.save(save_to))
    # Nobody wants to find this among pictures.
    reason = delivery.undeliverable or "it has no content"
    line.show("")
    print(f"warning: {quoted(delivery.id)} is not saved: {quoted(reason, 300)}", file=sys.stderr)
    return None


def _filter(text: str) -> dict[str, Any]:
    if not text.lstrip().startswith("{"):
        return {"sql": text}
    from distributary.content.documents import parse_document

    try:
        found = parse_document(text)
    except BadInput as error:
        raise error.within("--filter") from None
    assert isinstance(found, dict)
    return found


def _tolerance(text: str) -> dict[str, Any]:
    words = text.split()
    try:
        pointer, kind, amount = words
        return {"value": pointer, "divergence": kind, "amount": float(amount)}
    except ValueError:
        raise BadInput(
            "--tolerance",
            f"{quoted(text)} is not a pointer, a kind and an amount",
            hint="write it as in '/price absolute 0.5'",
        ) from None
