"""`distributary generate`: random problems, the same for the same seed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from distributary.cli import generate_wiring
from distributary.cli.network_options import At, NetworkOptions, chosen_sites, print_notes
from distributary.cli.option_groups import with_groups
from distributary.cli.options import Seed, output_option, was_given
from distributary.cli.output import check_output, print_written, write_document
from distributary.errors import BadInput, counted
from distributary.files import writing

if TYPE_CHECKING:
    from distributary.fidelity.problem import FidelityProblem

__all__ = ["app"]

EXAMPLES = """\
\b
Examples:
  distributary generate placement map --seed 7 -o map.json
  distributary generate placement video --brokers 200 --heterogeneity strong
  distributary generate placement sparse --formats 100 | distributary place -
  distributary generate placement map --topology Geant2011.gml -o map.json
  distributary generate tree --seed 7 -o stream.json
  distributary generate wiring --seed 7 -o users.json
"""

TREE_EXAMPLES = """\
\b
Examples:
  distributary generate tree --seed 7 -o stream.json
  distributary generate tree --objects 100 --interest 0.6 --load 3 -o stocks.json
  distributary generate tree --topology Geant2011.gml --at AT --at FR --at IT
  distributary generate tree --delays rtt.txt.gz --round-trip --servers 200 -o rtt.json
"""

Output = Annotated[Path | None, output_option("PROBLEM.json")]
Kind = Literal["map", "video", "dense", "sparse", "few-wants", "steiner"]

app = typer.Typer(help="Write a random problem, the same for the same seed.", epilog=EXAMPLES)


@app.callback()
def generate() -> None:
    """Write a random problem, the same for the same seed."""


@app.command("placement", epilog=EXAMPLES)
@with_groups
def placement(
    context: typer.Context,
    kind: Annotated[Kind, typer.Argument(metavar="KIND", help="The kind of problem.")],
    seed: Seed = 0,
    brokers: Annotated[
        int | None, typer.Option(min=1, help="Brokers in the overlay.", show_default="by kind")
    ] = None,
    formats: Annotated[
        int | None, typer.Option(min=1, help="Formats.", show_default="by kind")
    ] = None,
    matching: Annotated[
        float | None,
        typer.Option(
            min=0.0, max=1.0, help="Share of brokers that want something.", show_default="by kind"
        ),
    ] = None,
    wants: Annotated[
        int | None,
        typer.Option(min=0, help="Most formats that one broker wants.", show_default="by kind"),
    ] = None,
    heterogeneity: Annotated[
        Literal["none", "weak", "strong"], typer.Option(help="How brokers and links differ.")
    ] = "none",
    tree: Annotated[
        Literal["routes", "recursive"],
        typer.Option(help="A tree of overlay routes, or a random recursive one."),
    ] = "routes",
    alpha: Annotated[float, typer.Option(help="What a unit of transmission is worth.")] = 1.0,
    beta: Annotated[float, typer.Option(help="What a unit of conversion is worth.")] = 1.0,
    network: NetworkOptions = NetworkOptions(),
    at: At = None,
    output: Output = None,
) -> None:
    """Write a problem for `distributary place`.

    map and video are the scenarios of the published experiments; dense, sparse,
    few-wants and steiner have more formats than any exact method can manage. In a network
    of your own the tree is that of the quickest ways from the root.
    """
    check_output(output, "-o")
    sites = network.sites()
    chosen_sites(sites, at, brokers, "--brokers")
    if sites is not None and was_given(context, "tree"):
        raise BadInput("--tree", "cannot be combined with a network, which has ways of its own")
    from distributary.placement.generate import generate_problem
    from distributary.placement.problem_file import problem_document

    problem = generate_problem(
        kind,
        seed=seed,
        brokers=brokers,
        formats=formats,
        matching=matching,
        wants=wants,
        heterogeneity=heterogeneity,
        tree=tree,
        alpha=alpha,
        beta=beta,
        sites=sites,
        at=at or (),
    )
    write_document(problem_document(problem), output)
    print_notes(sites)
    print_written(
        f"{kind}: {counted(problem.node_count, 'node')}, "
        f"{counted(problem.format_count, 'format')}, "
        f"{counted(problem.graph.conversion_count, 'conversion')}, seed {seed}",
        output,
    )


@app.command("tree", epilog=TREE_EXAMPLES)
@with_groups
def tree(
    seed: Seed = 0,
    servers: Annotated[
        int | None,
        typer.Option(
            min=1, help="Servers beside the source.", show_default="256, or all of a file"
        ),
    ] = None,
    objects: Annotated[int, typer.Option(min=1, help="Objects in the stream.")] = 1,
    load: Annotated[float, typer.Option(help="Factor on the servers' mean times.")] = 1.0,
    interest: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Probability that a server wants an object.")
    ] = 1.0,
    rates: Annotated[
        tuple[float, float] | None,
        typer.Option(
            metavar="LEAST MOST",
            help="Updates per second.",
            show_default="0.5 1.5, or 0.01 0.03 for several objects",
        ),
    ] = None,
    routers: Annotated[
        int | None, typer.Option(min=2, help="Routers in the network.", show_default="3500")
    ] = None,
    network: NetworkOptions = NetworkOptions(),
    at: At = None,
    adaptation: Annotated[
        bool, typer.Option("--adaptation", help="Count what adapting the tree costs.")
    ] = False,
    output: Output = None,
) -> None:
    """Write a problem for `distributary tree`.

    Times, rates and network are those of the published experiments unless said
    otherwise. With more than 500 nodes and -o, delays go to a .npy file beside it.
    """
    check_output(output, "-o")
    sites = network.sites()
    chosen = chosen_sites(sites, at, servers, "--servers")
    from distributary.fidelity.generate import PAPER_ADAPTATION, SERVERS, generate_problem

    if sites is not None and len(sites.names) < 2:
        said = "has no two places that are connected: one for the source, one for a server"
        raise BadInput(sites.file, "; ".join((said, *sites.notes)))
    if chosen is not None:
        if len(chosen) < 2:
            raise BadInput("--at", "names one place, and a stream needs two: a source and a server")
        count = len(chosen)
    elif servers is not None:
        count = servers + 1
    else:
        count = SERVERS + 1 if sites is None else len(sites.names)
    beside = _delays_file(count, output)
    problem = generate_problem(
        seed=seed,
        servers=None if chosen is not None else count - 1,
        routers=routers,
        objects=objects,
        load=load,
        interest=interest,
        rates=rates,
        delays=None if sites is None else sites.delays,
        places=None if sites is None else sites.names,
        chosen=chosen,
        adaptation=PAPER_ADAPTATION if adaptation else None,
    )
    _write_stream(problem, output, beside)
    print_notes(sites)
    print_written(
        f"tree: {counted(problem.node_count - 1, 'server')}, "
        f"{counted(problem.object_count, 'object')}, seed {seed}",
        output,
    )


app.command("wiring", epilog=generate_wiring.EXAMPLES)(generate_wiring.wiring)


def _delays_file(node_count: int, output: Path | None) -> Path | None:
    """Return where the delays go if they go to a file of their own."""
    from distributary.fidelity.delays_file import DELAYS_INSIDE_MAX, DELAYS_READABLE_MAX

    # Nothing stands beside a pipe or a device.
    if output is not None and (output.is_file() or not output.exists()):
        inside = node_count <= DELAYS_INSIDE_MAX
        return None if inside else output.with_name(f"{output.stem}.delays.npy")
    if node_count > DELAYS_READABLE_MAX:
        raise BadInput(
            "--servers",
            f"the delays between {node_count:,} nodes do not go through JSON",
            hint="write to a file with -o, and they go to another one beside it",
        )
    return None


def _write_stream(problem: FidelityProblem, output: Path | None, beside: Path | None) -> None:
    """Write a fidelity problem, and its delays to the file beside it if there is one."""
    from distributary.fidelity.delays_file import write_delays
    from distributary.fidelity.problem_file import problem_document

    if beside is not None:
        with writing(beside, "-o"):
            write_delays(problem, beside)
    name = None if beside is None else beside.name
    write_document(problem_document(problem, delays_file=name), output)
