"""The formula of a filter says what the filter says, for every event."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests import strategies_cesql
from tests.filter_pairs import Event, any_filter, events

from distributary.filters.atoms import Found, Outcome
from distributary.filters.covers import covers
from distributary.filters.dialects import Sql
from distributary.filters.expression import Expression, parse_expression
from distributary.filters.filter import Filter
from distributary.filters.filter_formula import filter_formula
from distributary.filters.formula import Complement, Conjunction, Disjunction, Fact, Formula

RANDOMS = st.randoms(use_true_random=False)


def holds(formula: Formula, event: Event) -> bool:
    """Evaluate a formula by asking every atom."""
    match formula:
        case Fact(Outcome("", node, functions, expected), sign):
            # An expression over several attributes.
            evaluation = Expression("", node, functions).evaluate(event.attributes)
            return (evaluation.value is expected and not evaluation.errors) is sign
        case Fact(atom, sign):
            return atom.holds(value_at(event, atom.key)) is sign
        case Conjunction(parts):
            return all(holds(part, event) for part in parts)
        case Disjunction(parts):
            return any(holds(part, event) for part in parts)
        case Complement(part):
            return not holds(part, event)


def value_at(event: Event, key: str) -> Found:
    sources: tuple[Mapping[str, Found], ...] = (event.attributes, event.numbers, event.texts)
    return next((source[key] for source in sources if key in source), None)


@given(RANDOMS)
def test_a_formula_holds_when_its_filter_matches(random: Random) -> None:
    keys = ("kind", "/price")
    filter_ = Filter.parse([any_filter(random, keys, depth=3) for _ in range(2)])
    formula = filter_formula(filter_)
    for event in events(keys)[random.randrange(97) :: 97]:
        assert holds(formula, event) is filter_.matches(event)


@settings(max_examples=150)
@given(strategies_cesql.expressions(), st.lists(strategies_cesql.events(), min_size=1, max_size=8))
def test_a_formula_holds_when_its_expression_passes(
    text: str, attributes: list[dict[str, strategies_cesql.Value]]
) -> None:
    expression = parse_expression(text)
    filter_ = Filter((Sql(expression),))
    for found in attributes:
        event = Event(found)
        assert holds(filter_formula(filter_), event) is expression.passes(found)
    assert covers(filter_, Filter((Sql(parse_expression(text)), Sql(parse_expression("a = 'a'")))))
