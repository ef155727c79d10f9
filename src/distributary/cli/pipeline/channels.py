"""`distributary pipeline channels`: what is published and wanted in each cell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from distributary.cli.pipeline.options import DayJobOptions, Running, command

if TYPE_CHECKING:
    from distributary.content.content_space import ContentSpace

__all__ = ["channels"]


@command(
    "What is published and wanted where.",
    "channels --data data",
    "channels --data data --space default --new-space",
    "channels --data data --since 2026-01-05",
    "channels --data data --dimension /lat --dimension /lon --bins 8 --by mass",
    "channels --data data --space space.json",
)
def channels(
    job: DayJobOptions,
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
    new_space: Annotated[
        bool,
        typer.Option("--new-space", help="Choose the space anew, and count all days again."),
    ] = False,
) -> None:
    """Sort publications and subscriptions into the cells of a content space.

    Reads publications and subscriptions; writes channels (the cells), rates_published (what
    each user publishes in each cell, in bytes per second from the first to the last
    publication) and interests (the cells that each user's subscriptions can touch).

    The space is chosen once, from all publications, and kept. Of the days that are named, what
    is published is counted again, by day, user and cell in volume_days; rates_published are sums
    over the days that are named.
    """
    from distributary.pipeline.jobs import channels as jobs

    days = job.days
    wish = jobs.SpaceWish(space, tuple(dimension or ()), bins, by)

    def chosen(running: Running) -> ContentSpace:
        kept = None if new_space else wish.kept(running.target)
        return wish.chosen(running.source) if kept is None else kept

    job.run(
        "channels",
        lambda running: jobs.channels(
            running.source, running.target, chosen(running), days, wish=wish
        ),
        frames=lambda running: jobs.frames(running.source, chosen(running), days),
    )
