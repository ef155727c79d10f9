"""`distributary pipeline channels`: what is published and wanted in each cell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from distributary.cli.pipeline.options import Job, Running, command

if TYPE_CHECKING:
    from distributary.content.content_space import ContentSpace

__all__ = ["channels"]


@command(
    "What is published and wanted where.",
    "channels --data data",
    "channels --data data --space default",
    "channels --data data --dimension /lat --dimension /lon --bins 8 --by mass",
    "channels --data data --space space.json",
)
def channels(
    job: Job,
    space: Annotated[
        str | None,
        typer.Option(
            metavar="types|default|FILE",
            help="The content space: a cell for each type that occurs; the attribute type in 64 "
            "buckets, as brokers have it unless told; or a file such as "
            '{"dimensions": [{"name": ..., "edges": [...]}, ...]}.',
            show_default="types",
        ),
    ] = None,
    dimension: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="An attribute or a JSON Pointer that the space looks at; may be repeated.",
            show_default=False,
        ),
    ] = None,
    bins: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Bins of every --dimension, or how many types have a cell of their own.",
            show_default="16, or 1000 types",
        ),
    ] = None,
    by: Annotated[
        str,
        typer.Option(
            metavar="width|mass",
            help="Divide numbers into bins equally wide, or with equally many publications.",
        ),
    ] = "width",
) -> None:
    """Sort publications and subscriptions into the cells of a content space.

    Reads publications and subscriptions; writes channels (the cells), rates_published (what
    each user publishes in each cell, in bytes per second from the first to the last
    publication) and interests (the cells that each user's subscriptions can touch).
    """
    from distributary.pipeline.jobs import channels as jobs

    def chosen(running: Running) -> ContentSpace:
        return jobs.space_for(
            running.source, space=space, dimensions=dimension or (), bins=bins, by=by
        )

    job.run(
        "channels",
        lambda running: jobs.channels(running.source, running.target, chosen(running)),
        frames=lambda running: jobs.frames(running.source, chosen(running)),
    )
