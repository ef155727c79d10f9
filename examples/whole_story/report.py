"""The report: what happened, drawn and put into words."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from examples.whole_story.delivery import SHOWN
from examples.whole_story.history import History
from examples.whole_story.outcome import DeliveredMap, Overlay
from examples.whole_story.page import (
    Bar,
    Chapter,
    Received,
    Tile,
    bars,
    figure,
    line_chart,
    paragraph,
    table,
    write_page,
)
from examples.whole_story.streams import Streams
from examples.whole_story.tables import CORE_PRICE, PLACES_MAX, SIZES

from distributary.drawing import tree_picture
from distributary.drawing.plane import plane_picture
from distributary.drawing.scene import NOT_MADE, TreeScene
from distributary.pipeline.store import Store
from distributary.wiring.cost import cost
from distributary.wiring.draw import wiring_plane
from distributary.wiring.problem import WiringProblem
from distributary.wiring.problem_tables import read_problem_tables
from distributary.wiring.wiring import Wiring

__all__ = ["Savings", "write_report"]


@dataclass(frozen=True)
class Savings:
    """What planning saves, each beside the cheapest that is simple.

    Attributes
    ----------
    wiring, conversions, streams
        Shares of the cost of wiring, of what converting and sending the map costs, and of the
        loss of streams.
    history
        The share of what converting and sending costs over the whole history.
    wiring_rule, conversions_way, history_way
        The simple rules that came out cheapest.
    """

    wiring: float
    wiring_rule: str
    conversions: float
    conversions_way: str
    history: float
    history_way: str
    streams: float


def write_report(
    folder: Path, history: History, overlay: Overlay, streams: Streams, pdf: bytes, *, seed: int
) -> Savings:
    """Write `report.html`, and beside it the map and what the three devices received."""
    wiring, problem = _wiring(history)
    rules = _simple_rules(history, problem)
    rule = min(rules, key=rules.__getitem__)
    own, simple = overlay.map.cost, overlay.map.simple
    way = min(simple, key=simple.__getitem__)
    plans = _plans(history)
    usual = min(plans.simple, key=plans.simple.__getitem__)
    savings = Savings(
        wiring=1.0 - wiring.cost.total / rules[rule],
        wiring_rule=rule,
        conversions=1.0 - own / simple[way],
        conversions_way=way,
        history=1.0 - plans.planned / plans.simple[usual],
        history_way=usual,
        streams=1.0 - streams.adapting_after / streams.fixed_after,
    )
    (folder / "map.pdf").write_bytes(pdf)
    cards = ""
    for name, (device, _) in SHOWN.items():
        media_type, content, seconds = overlay.map.received[name]
        suffix = {"image": "jpg", "text": "txt", "audio": "mp3"}[media_type.partition("/")[0]]
        (folder / f"{name}.{suffix}").write_bytes(content)
        how = f"Came {seconds:.1f} s after it was published, {_way(overlay, name)}."
        cards += Received(name, device, media_type, content, how).card()
    chapters = [
        Chapter(
            "1. One map, many devices",
            paragraph(
                f"A map of a flood was published once, as a PDF of {len(pdf) / 1e6:.1f} MB. "
                f"{len(overlay.map.formats)} devices at {len(overlay.names)} brokers received it, "
                f"in {len(set(overlay.map.formats.values()))} formats. Three of them:"
            )
            + f'<div class="pair">{cards}</div>'
            + paragraph(
                "Brokers are processes on this machine that speak by way of a NATS server. "
                f"{_killed(overlay)}"
            ),
        ),
        Chapter(
            "2. Where each conversion ran",
            paragraph(
                "The broker at which the map meets its subscribers plans for all of them: pictures "
                "of several sizes, text, speech. The picture shows what is sent over each "
                "link, and which broker makes which format."
            )
            + figure(
                tree_picture(_scene(overlay)).svg(),
                "From the rendezvous broker on the left to the devices' brokers.",
            )
            + paragraph(
                "What sending and converting cost, in three simple ways and as planned: "
                "everything converted at the first broker; the PDF sent everywhere, and each "
                "broker converts what its own devices want; every link carries the one format "
                "from which all below it can be made."
            )
            + bars(
                [
                    *(Bar(name, amount) for name, amount in simple.items()),
                    Bar("planned", own, planned=True),
                ],
                digits=2,
            )
            + paragraph(
                f"The same for all {plans.count:,} publications of the history that somebody "
                "gets; the last way but one is to choose the cheapest of the three for each."
            )
            + bars(
                [
                    *(Bar(name, amount) for name, amount in plans.simple.items()),
                    Bar("the cheapest of these for each", plans.cheapest_for_each),
                    Bar("planned", plans.planned, planned=True),
                ]
            ),
        ),
        Chapter(
            "3. Who attaches to which broker",
            paragraph(
                f"Traffic between brokers is expensive: {CORE_PRICE:g} times as much as traffic to "
                "a user over the same distance. So it can pay to attach people who follow the same "
                "places to one broker, even if another is nearer. With broad interests or a cheap "
                "core it would not, and the nearest broker would be the plan."
            )
            + figure(
                plane_picture(wiring_plane(problem, wiring)).svg(),
                "Users around the brokers that the plan attaches them to; lines are traffic.",
            )
            + bars(
                [
                    *(Bar(name, amount) for name, amount in rules.items()),
                    Bar("planned", wiring.cost.total, planned=True),
                    Bar("no wiring can cost less than", wiring.lower_bound),
                ]
            ),
        ),
        Chapter(
            "4. Streams that follow the load",
            paragraph(
                "Values change about once a second, and every follower says how far its copy may "
                "be off. Loss of fidelity is the share of time that copies are further off than "
                "that. Both lines begin with good trees: somebody has measured who needs how many "
                "updates, and put each broker, those that need most first, below the nearest one "
                f"with room. At {streams.shift_s:.0f} s half of the brokers become slow. This is a "
                "simulation of 24 brokers: machines do not become slow when one wants them to."
            )
            + figure(
                line_chart(
                    {
                        "trees stay as they are": streams.fixed,
                        f"trees adapt ({streams.moves} moves)": streams.adapting,
                    },
                ),
                "Every broker decides by itself, from what it measures around it.",
            )
            + bars(
                [
                    Bar("trees stay as they are, % at the end", 100.0 * streams.fixed_after),
                    Bar("trees adapt, % at the end", 100.0 * streams.adapting_after, planned=True),
                ],
                digits=3,
            )
            + _prices(overlay),
        ),
        Chapter(
            "5. The history that plans were made from",
            paragraph(
                f"A day of history: {SIZES.publications:,} publications, and {SIZES.users} people "
                f"around {SIZES.brokers} brokers, each of whom follows up to {PLACES_MAX} of 256 "
                "places. Spark reads it, puts broken rows aside, works out who gets what, what "
                "travels where, and how often values leave somebody's tolerance. The planners "
                "work from that."
            )
            + _jobs(history),
        ),
        Chapter("6. What was checked", _proof(overlay, streams, seed)),
    ]
    write_page(
        folder / "report.html",
        title="Publish once",
        lead="Every subscriber got exactly what matches its filter, in the format its device can "
        "use, and the network decided where to attach, where to convert and which way to send. "
        "Everything below was done by one command on this machine.",
        tiles=[
            Tile(f"{overlay.made:,} of {overlay.owed:,}", "deliveries made, each exactly once"),
            Tile(
                f"{savings.wiring:.0%} less",
                f"cost of access and of traffic between brokers than {savings.wiring_rule}",
            ),
            Tile(
                f"{savings.conversions:.0%} less",
                f"cost of sending and converting the map than {way}, the best of the simple ways",
            ),
            Tile(
                f"{savings.streams:.0%} less",
                "time outside tolerance than with good trees that stay as they are, simulated",
            ),
        ],
        chapters=chapters,
    )
    return savings


def _simple_rules(history: History, problem: WiringProblem) -> dict[str, float]:
    """Return what the wirings cost that somebody would make by hand, and the published ones."""
    figures = history.reports["wire"].figures
    costs = {
        "everybody at the nearest broker": figures["packing"],
        "a published method, clustering": figures["clustering"],
        "a published method, mixing": figures["mixing"],
    }
    rules = {name: float(amount) for name, amount in costs.items() if amount is not None}
    demand = float((problem.sent + problem.received).sum())
    roomy = np.flatnonzero(problem.capacities >= demand).tolist()
    if roomy:
        everybody = np.zeros(problem.user_count, dtype=np.int64)
        rules["everybody at one broker"] = min(
            cost(problem, everybody + broker).total for broker in roomy
        )
    return rules


@dataclass(frozen=True)
class _Plans:
    """How many publications were planned, and what they cost altogether, by the way it is done."""

    count: int
    simple: dict[str, float]
    cheapest_for_each: float
    planned: float


def _plans(history: History) -> _Plans:
    rows = Store(str(history.data)).read("plans")
    # Who has no home broker, or no format, is not planned for, and may be the only one.
    rows = rows.filter(rows["failure"].is_null())
    simple = np.column_stack(
        [rows[name].to_numpy() for name in ("all_in_root", "all_in_leaves", "single_format")]
    )
    return _Plans(
        rows.num_rows,
        {
            "all at the first broker": float(simple[:, 0].sum()),
            "each where it is wanted": float(simple[:, 1].sum()),
            "one format on each link": float(simple[:, 2].sum()),
        },
        cheapest_for_each=float(simple.min(axis=1).sum()),
        planned=float(rows["total_cost"].to_numpy().sum()),
    )


def _jobs(history: History) -> str:
    rows = [
        (
            name,
            f"{sum(report.rows_in.values()):,}",
            f"{sum(report.rows_out.values()):,}",
            f"{report.seconds:.1f}",
        )
        for name, report in history.reports.items()
    ]
    return table(("job", "rows in", "rows out", "seconds"), rows, numbers=(1, 2, 3))


def _wiring(history: History) -> tuple[Wiring, WiringProblem]:
    """Return the wiring of the history, and its problem."""
    problem = read_problem_tables(history.data).problem
    rows = Store(str(history.data)).read("wiring")
    known = dict(zip(rows["user"].to_pylist(), rows["broker"].to_pylist(), strict=True))
    broker_of = np.array([problem.brokers.index(known[user]) for user in problem.users])
    figures = history.reports["wire"].figures
    wiring = Wiring(
        method=str(figures["method"]),
        core="mst",
        broker_of=broker_of,
        cost=cost(problem, broker_of),
        lower_bound=float(figures["lower_bound"] or 0.0),
        seconds=history.reports["wire"].seconds,
        problem=problem,
    )
    return wiring, problem


def _scene(overlay: Overlay) -> TreeScene:
    """Return the tree of the map as it was: what links carried and what brokers made."""
    story = overlay.map
    parent_of = {to: sender for sender, to, _ in story.links}
    root = next(sender for sender, _, _ in story.links if sender not in parent_of)
    order = [root]
    for node in order:
        order += sorted(to for sender, to, _ in story.links if sender == node)
    index = {node: at for at, node in enumerate(order)}
    kinds = sorted(
        {"application/pdf"}
        | {kind for _, _, carried in story.links for kind in carried}
        | {made for _, _, made in story.conversions}
    )
    column = {kind: at for at, kind in enumerate(kinds)}
    shape = (len(order), len(kinds))
    carried, wanted = np.zeros(shape, dtype=np.bool_), np.zeros(shape, dtype=np.bool_)
    made_from = np.full(shape, NOT_MADE, dtype=np.int64)
    for _, to, formats in story.links:
        for kind in formats:
            carried[index[to], column[kind]] = True
    for broker, source, target in story.conversions:
        made_from[index[broker], column[target]] = column[source]
    for name, kind in story.formats.items():
        if story.homes[name] in index and kind in column:
            wanted[index[story.homes[name]], column[kind]] = True
    held = np.array([kind == "application/pdf" for kind in kinds])
    return TreeScene(
        title="A map on its way",
        subtitle=f"{len(order)} brokers, {len(story.conversions)} conversions",
        nodes=tuple(overlay.names[node] for node in order),
        parents=np.array([-1, *(index[parent_of[node]] for node in order[1:])], dtype=np.int64),
        kind_noun="format",
        kinds=tuple(kinds),
        carried=carried,
        made_from=made_from,
        wanted=wanted,
        held=held,
        link_costs=np.zeros(len(order)),
        node_costs=np.zeros(len(order)),
        legend_columns=("conversions",),
        legend_cells=tuple(
            (str(sum(target == kind for _, _, target in story.conversions)),) for kind in kinds
        ),
    )


def _way(overlay: Overlay, name: str) -> str:
    """Return how the map came to a device, in words."""
    story: DeliveredMap = overlay.map
    parent_of = {to: sender for sender, to, _ in story.links}
    way = [story.homes[name]]
    while way[-1] in parent_of:
        way.append(parent_of[way[-1]])
    made = story.received[name][0]
    makers = [broker for broker, _, target in story.conversions if target == made]
    maker = next((broker for broker in way if broker in makers), None)
    words = "by way of " + ", ".join(overlay.names[broker] for broker in reversed(way))
    return words + (f", made at {overlay.names[maker]}" if maker is not None else "")


def _killed(overlay: Overlay) -> str:
    """Return what became of the broker that was killed, in words."""
    if overlay.kill is None:
        return "None of them was killed."
    kill = overlay.kill
    return (
        f"As soon as the map was planned, {overlay.names[kill.broker]} was killed, the home of "
        f"{kill.devices} of these devices. It was started again, answered after "
        f"{kill.away_s:.1f} s, and went on from its journal."
    )


def _prices(overlay: Overlay) -> str:
    """Return what the stream of prices did in the overlay of real processes."""
    prices = overlay.prices
    words = (
        f"Beside the map, real brokers carried prices to {prices.followers} followers, with trees "
        f"that began with two children at each broker: {prices.changes:,} changes, of which "
        f"tolerances asked for {prices.updates:,} updates, and {prices.moves} moves of adaptation. "
        "The line shows the loss that followers saw. The start and the kill are in its first "
        "seconds, and broker processes, Spark and conversions shared the cores of this machine."
    )
    chart = figure(
        line_chart({"prices over real brokers": prices.loss}),
        "The share of time that copies were further off than their followers tolerate.",
    )
    return paragraph(words) + chart


def _proof(overlay: Overlay, streams: Streams, seed: int) -> str:
    rows = [
        (
            "Deliveries owed, made, made twice",
            f"{overlay.owed}, {overlay.made}, {overlay.duplicates}",
        ),
        (
            "Deliveries that Spark had predicted, and that came about in the same format",
            f"{overlay.predicted}, {overlay.agreed}",
        ),
        ("Deliveries that Spark had not predicted", str(overlay.others)),
        ("Deliveries that still waited in the end", str(overlay.waiting)),
        (
            "Prices at all followers within their tolerance",
            "yes" if overlay.prices.within else "no",
        ),
        ("Violations in the two simulated runs of the streams", str(streams.violations)),
        ("Seed", str(seed)),
    ]
    return table(("what", "figure"), rows)
