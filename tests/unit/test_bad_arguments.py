"""Whatever is wrong with an argument, its function says so in one sentence that names it."""

# What these tests do is what a type checker would not let pass.
# mypy: disable-error-code="arg-type, list-item, call-arg, type-var"

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distributary.arguments import check_count, check_number, checked
from distributary.content import (
    AdaptationGraph,
    ContentSpace,
    DeviceProfile,
    EffectiveTolerance,
    ForwardingRule,
    MediaType,
    Publication,
    Subscription,
    Tolerance,
)
from distributary.errors import BadInput, WrongType
from distributary.fidelity import build_trees
from distributary.fidelity.generate import generate_problem as generate_stream
from distributary.filters import Filter, Index, cells, covers, evaluate
from distributary.media.limits import Limits
from distributary.media.pool import Pool
from distributary.placement import place
from distributary.placement.generate import generate_problem as generate_placement
from distributary.wiring import wire
from distributary.wiring.generate import generate_problem as generate_wiring

PUBLIC = (
    "content",
    "content.calibrated_graph",
    "drawing",
    "fidelity",
    "fidelity.generate",
    "fidelity.problem_file",
    "fidelity.tree_file",
    "filters",
    "media.cache",
    "media.formats",
    "media.limits",
    "media.pool",
    "media.registry",
    "media.sniff",
    "pipeline.store",
    "placement",
    "placement.comparison",
    "placement.generate",
    "placement.plan_file",
    "placement.problem_file",
    "simulator",
    "topology",
    "wiring",
    "wiring.generate",
    "wiring.problem_file",
    "wiring.problem_tables",
    "wiring.wiring_file",
)
# What a loop calls for every event or update, what only results are made of, and what has no
# wrong types: a document may be anything.
UNCHECKED = {
    "content.EffectiveTolerance",
    "content.FormatChoice",
    "content.NoFormat",
    "content.Publication",
    "content.Version",
    "content.Version.of",
    "fidelity.Loss",
    "fidelity.ProblemFile",
    "fidelity.StreamTrees",
    "fidelity.TreePlace",
    "fidelity.problem_file.ProblemFile",
    "filters.Evaluation",
    "filters.EvaluationError",
    "filters.Expression",
    "filters.Filter",
    "filters.Function",
    "filters.Functions",
    "media.registry.Conversion",
    "placement.Cost",
    "placement.MethodResult",
    "placement.NodePlan",
    "placement.Placement",
    "placement.Plan",
    "placement.ProblemFile",
    "placement.comparison.MethodResult",
    "placement.problem_file.ProblemFile",
    "simulator.DeliveryRow",
    "topology.RoutingTables",
    "topology.Sites",
    "topology.TreeNode",
    "topology.shared_prefix_length",
    "wiring.Assignment",
    "wiring.ProblemFile",
    "wiring.Wiring",
    "wiring.WiringCost",
    "wiring.generate.Layout",
    "wiring.generate.check_arguments",
    "wiring.problem_file.ProblemFile",
    "wiring.wiring_file.Assignment",
}


class Odd:
    """Nothing that anybody asked for."""


def entry_points() -> Iterator[tuple[str, Callable[..., object]]]:
    """Yield every public function, constructor and other maker of objects that needs something."""
    for package in PUBLIC:
        module = import_module(f"distributary.{package}")
        for name in module.__all__:
            value = getattr(module, name)
            makers = [(f"{package}.{name}", value)]
            if inspect.isclass(value):
                if issubclass(value, BaseException) or hasattr(value, "__members__"):
                    continue
                makers += [
                    (f"{package}.{name}.{key}", getattr(value, key))
                    for key, kind in vars(value).items()
                    if isinstance(kind, classmethod | staticmethod) and not key.startswith("_")
                ]
            for full_name, maker in makers:
                if callable(maker) and full_name not in UNCHECKED and required(maker):
                    yield full_name, maker


def required(function: Callable[..., object]) -> list[str]:
    """Return the parameters that must be given and may not be just anything."""
    return [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]


ENTRY_POINTS = dict(entry_points())


def test_there_are_many_entry_points() -> None:
    assert len(ENTRY_POINTS) > 80
    assert "placement.place" in ENTRY_POINTS


@pytest.mark.parametrize("odd", [Odd(), [Odd()]], ids=["object", "list"])
@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_an_argument_of_a_wrong_type_is_named(name: str, odd: object) -> None:
    names = required(ENTRY_POINTS[name])
    with pytest.raises(BadInput) as caught:
        ENTRY_POINTS[name](**dict.fromkeys(names, odd))
    check_sentence(caught.value, names)


# What messages about a document, or a part of one, call it.
NOUNS = ("document", "event", "media type", "profile", "tolerance", "tree", "filters")


def check_sentence(error: BadInput, names: Sequence[str]) -> None:
    """Assert that the message is one sentence that begins with one of the names."""
    text = str(error)
    assert "\n" not in text
    assert error.place.split("[")[0].split(":")[0] in {*names, *NOUNS}, text
    assert "object at 0x" not in text


INDEX = Index()
FILTER = Filter.parse([])
FILTER_OF_TYPE = Filter.parse([{"exact": {"type": "a"}}])
EVENT = {"specversion": "1.0", "id": "1", "source": "/", "type": "a"}
GRAPH = AdaptationGraph.from_conversions([("a", 1.0)], [])
SMALL = generate_placement("map", seed=1, brokers=4)
STREAM = generate_stream(seed=1, servers=3, routers=10)
USERS = generate_wiring(seed=1, users=4, brokers=2)

CALLS: dict[str, tuple[Callable[[], object], str]] = {
    "match": (lambda: INDEX.match(EVENT), "publication: must be a Publication, not a dict; hint"),
    "match text": (lambda: INDEX.match("a"), "publication: must be a Publication, not a str"),
    "match each": (
        lambda: list(INDEX.match_each([Publication.parse(EVENT), EVENT])),
        "publications[1]: must be a Publication, not a dict",
    ),
    "matches": (lambda: FILTER_OF_TYPE.matches(EVENT), "publication: must be a Publication"),
    "add_filter": (lambda: INDEX.add_filter("x", []), "filter_: must be a Filter, not a list"),
    "add_filter id": (lambda: INDEX.add_filter(3, FILTER), "subscription: must have an id"),
    "add": (lambda: INDEX.add({"id": "x"}), "subscription: must be a Subscription, not a dict"),
    "add_all": (lambda: INDEX.add_all(["x"]), "subscriptions[0]: must be an id and a Filter"),
    "add_all text": (lambda: INDEX.add_all("x"), "subscriptions: must be an iterable, not a str"),
    "add_batch": (lambda: INDEX.add_batch([]), "subscriptions: must be a Table or a RecordBatch"),
    "match_batch": (lambda: INDEX.match_batch(EVENT), "publications: must be a Table or"),
    "remove": (lambda: INDEX.remove(None), "subscription_id: must be a string, not None"),
    "functions": (lambda: Index(functions={}), "functions: must be a Functions, not a dict"),
    "covers": (lambda: covers([], FILTER), "a: must be a Filter, not a list"),
    "cells": (lambda: cells([], "space"), "space: must be a ContentSpace, not a str"),
    "evaluate": (lambda: evaluate("TRUE", [EVENT]), "event: must be a mapping, not a list"),
    "place": (lambda: place("file"), "problem: must be a PlacementProblem, not a str; hint: read_"),
    "trees": (lambda: build_trees("file"), "problem: must be a FidelityProblem, not a str; hint"),
    "wire": (lambda: wire("file"), "problem: must be a WiringProblem, not a str; hint: read_"),
    "place seed": (lambda: place(SMALL, seed=-1), "seed: must be at least 0, not -1"),
    "place limit": (
        lambda: place(SMALL, time_limit=math.nan),
        "time_limit: must be a finite number, not nan",
    ),
    "place no time": (lambda: place(SMALL, time_limit=0), "time_limit: must be greater than 0"),
    "place count": (lambda: place(SMALL, iterations=1.5), "iterations: must be a whole number"),
    "place method": (lambda: place(SMALL, method=None), "method: must be a string, not None"),
    "place select": (lambda: place(SMALL, select="x"), "select: 'x' is not one of slack, random"),
    "tree seed": (lambda: build_trees(STREAM, seed=True), "seed: must be a whole number, not a"),
    "tree start": (lambda: build_trees(STREAM, start=[0]), "start: must be a Forest or None"),
    "tree fanout": (
        lambda: build_trees(STREAM, method="dita", fanout=0),
        "fanout: must be at least 1, not 0",
    ),
    "wire moves": (lambda: wire(USERS, start=[0] * 4, moves=-1), "moves: must be at least 0"),
    "wire start": (lambda: wire(USERS, start=[0, 1]), "start: is 2, and must be 4"),
    "wire start at": (lambda: wire(USERS, start=[0, 1, 2, 0]), "start[2]"),
    "convert": (lambda: pool_convert("text"), "content: must be bytes, not a str"),
    "limits": (lambda: Limits(seconds="1"), "seconds: must be a number, not a str"),
    "limits nan": (lambda: Limits(seconds=math.nan), "seconds: must be a positive number"),
    "pages": (lambda: Limits(pages=1.5), "pages: must be a whole number, not a float"),
    "media type": (lambda: MediaType("text", 3), "subtype: must be a string, not an int"),
    "profile": (lambda: DeviceProfile("image/png"), "accept: must be"),
    "tolerance": (lambda: Tolerance("/x", "absolute", "1"), "amount: must be a number, not a str"),
    "tolerances": (lambda: EffectiveTolerance.of([1]), "tolerances[0]: must be a Tolerance"),
    "rule": (lambda: ForwardingRule(parent=None, child=1), "child: must be an EffectiveTolerance"),
    "subscription": (lambda: Subscription(1, []), "id: must be a string, not an int"),
    "space": (lambda: ContentSpace(["type"]), "dimensions: must be a tuple, not a list"),
    "dimension": (lambda: ContentSpace(("type",)), "dimensions[0]: must be a NumberBins or a"),
    "generate": (lambda: generate_placement("map", seed="1"), "seed: must be a whole number"),
    "generate load": (
        lambda: generate_stream(seed=1, load=math.nan),
        "load: is nan, and must be from",
    ),
    "generate users": (lambda: generate_wiring(seed=1, users=1.5), "users: must be a whole number"),
    "formats": (lambda: AdaptationGraph.from_conversions("ab", []), "formats: must be an iterable"),
    "format": (
        lambda: AdaptationGraph.from_conversions([("a", "1")], []),
        "formats[0].size: must be a number, not a str",
    ),
}


def pool_convert(content: Any) -> object:
    with Pool() as pool:
        return pool.convert(content, "text/plain", "text/plain;charset=utf-8")


@pytest.mark.parametrize("case", CALLS)
def test_a_bad_argument_gets_one_sentence(case: str) -> None:
    call, sentence = CALLS[case]
    INDEX.add_filter("s", FILTER_OF_TYPE)
    try:
        with pytest.raises(BadInput) as caught:
            call()
    finally:
        INDEX.remove("s")
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


def test_a_wrong_type_is_a_type_error_as_well() -> None:
    with pytest.raises(TypeError) as caught:
        place("file")
    assert isinstance(caught.value, WrongType)


def test_numbers_of_numpy_are_numbers() -> None:
    check_count("n", np.int64(3))
    check_number("x", np.float32(0.5))
    placement = place(SMALL, seed=np.uint8(1), iterations=np.int32(5))
    assert placement.total_cost == place(SMALL).total_cost


@checked
def example(
    count: int, share: float = 1.0, *names: str, path: Path | str | None = None, many: Any = 0
) -> tuple[Any, ...]:
    return count, share, names, path, many


def test_a_checked_function_does_what_it_did() -> None:
    assert example(1) == (1, 1.0, (), None, 0)
    assert example(1, 2, "a", path="p", many=Odd) == (1, 2, ("a",), "p", Odd)
    assert example.__name__ == "example"
    for arguments, place_ in (((None,), "count"), ((1, "2"), "share"), ((True,), "count")):
        with pytest.raises(WrongType) as caught:
            example(*arguments)
        assert caught.value.place == place_
    with pytest.raises(TypeError, match="missing 1 required"):
        example()
