"""`distributary generate wiring`: random users and brokers, the same for the same seed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from distributary.cli.network_options import At, NetworkOptions, chosen_sites, print_notes
from distributary.cli.option_groups import with_groups
from distributary.cli.options import Seed, check_number, was_given
from distributary.cli.output import print_written, write_document
from distributary.cli.tables_output import tables_folder, tables_option, writing_tables
from distributary.errors import BadInput, counted

__all__ = ["EXAMPLES", "wiring"]

EXAMPLES = """\
\b
Examples:
  distributary generate wiring --seed 7 -o users.json
  distributary generate wiring --users 10000 --interests 1 4 --core-ratio 0.1 -o narrow.json
  distributary generate wiring --users 200 --brokers 20 --unlimited | distributary wire -
  distributary generate wiring --users 100000 --brokers 1000 -o tables/
  distributary generate wiring --topology Geant2011.gml --at AT --at FR -o users.json
"""


@with_groups
def wiring(
    context: typer.Context,
    seed: Seed = 0,
    users: Annotated[int, typer.Option(min=1, help="Users.")] = 1_000,
    brokers: Annotated[
        int | None,
        typer.Option(min=1, help="Brokers.", show_default="one for every hundred users"),
    ] = None,
    channels: Annotated[
        int, typer.Option(min=1, help="Cells of each dimension of the content space.")
    ] = 64,
    dimensions: Annotated[int, typer.Option(min=1, help="Dimensions of the content space.")] = 1,
    core_ratio: Annotated[
        float, typer.Option(help="Mean price between brokers over that of access.")
    ] = 1.0,
    interests: Annotated[
        tuple[int, int] | None,
        typer.Option(
            metavar="LEAST MOST",
            help="Cells that a subscription spans in each dimension.",
            show_default="between two random points",
        ),
    ] = None,
    capacity_factor: Annotated[
        float, typer.Option(help="Capacity of all brokers over the demand of all users.")
    ] = 2.0,
    unlimited: Annotated[bool, typer.Option("--unlimited", help="Brokers without limit.")] = False,
    layout: Annotated[
        Literal["plane", "towns"], typer.Option(help="Users anywhere, or around centres.")
    ] = "plane",
    network: NetworkOptions = NetworkOptions(),
    at: At = None,
    output: Annotated[str | None, tables_option("PROBLEM")] = None,
) -> None:
    """Write a problem for `distributary wire`.

    What users publish and want, prices and capacities are those of the published
    experiments unless said otherwise.
    """
    check_number("--capacity-factor", capacity_factor, positive=True)
    if unlimited and was_given(context, "capacity_factor"):
        raise BadInput("--capacity-factor", "cannot be combined with --unlimited")
    sites = network.sites()
    chosen_sites(sites, at, brokers, "--brokers")
    if sites is not None and was_given(context, "layout"):
        raise BadInput("--layout", "cannot be combined with a network, which has places of its own")
    folder = tables_folder(output)
    from distributary.wiring.generate import check_arguments, generate_positions, generate_problem
    from distributary.wiring.problem_file import fits_document, problem_document

    broker_count = max(1, users // 100) if brokers is None else brokers
    if sites is not None and brokers is None:
        broker_count = len(at) if at else min(broker_count, len(sites.names))
    arguments: dict[str, Any] = {
        "seed": seed,
        "users": users,
        "brokers": broker_count,
        "channels": channels,
        "dimensions": dimensions,
        "core_ratio": core_ratio,
        "interests": interests,
        "capacity_factor": None if unlimited else capacity_factor,
    }
    try:
        check_arguments(**arguments)
    except BadInput as error:
        option = f"--{error.place.replace('_', '-')}"
        raise BadInput(option, error.problem, hint=error.hint) from None
    cells = channels**dimensions
    if folder is None and not fits_document(users=users, brokers=broker_count, channels=cells):
        raise BadInput(
            "--brokers" if broker_count > users else "--users",
            f"a problem of {counted(users, 'user')}, {counted(broker_count, 'broker')} and "
            f"{counted(cells, 'channel')} is too large for JSON",
            hint="write Parquet tables into a directory with -o DIR/",
        )
    where: dict[str, Any] = {"layout": layout, "sites": sites, "at": at or ()}
    count = None if at else broker_count
    problem = generate_problem(**{**arguments, "brokers": count}, **where)
    positions = generate_positions(seed=seed, users=users, brokers=count, **where)
    if folder is not None:
        from distributary.wiring.problem_writer import write_problem_tables

        with writing_tables(folder):
            write_problem_tables(problem, folder, positions=positions)
    else:
        target = None if output is None else Path(output)
        write_document(problem_document(problem, positions=positions), target)
    print_notes(sites)
    print_written(
        f"wiring: {counted(problem.user_count, 'user')}, "
        f"{counted(problem.broker_count, 'broker')}, "
        f"{counted(problem.channel_count, 'channel')}, seed {seed}",
        output,
    )
