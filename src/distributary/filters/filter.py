"""A subscription's filters: the dialects, read from untrusted JSON and compiled.

A filter is data (`TextFilter`, `Range`, `AnyOf`, ...) that the index, `covers` and `cells` read,
and a chain of small functions that answers for one publication. Nothing about a filter can
fail once it is made: whatever is wrong with it is said by `Filter.parse`, with its place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from distributary.content.reading import PublicationView, check_publication, number_at, text_at
from distributary.filters.dialects import All, AnyOf, Node, Not, Range, Sql, TextFilter
from distributary.filters.filter_parser import parse_filters
from distributary.filters.interval import Interval
from distributary.filters.sql_built_ins import BUILT_INS
from distributary.filters.sql_functions import Functions

__all__ = ["Filter"]

_Test: TypeAlias = Callable[[PublicationView], bool]


@dataclass(frozen=True)
class Filter:
    """What a subscription asks for: all of its parts hold; without parts, always."""

    parts: tuple[Node, ...] = ()

    @staticmethod
    def parse(
        filters: object, *, place: str = "filters", functions: Functions = BUILT_INS
    ) -> Filter:
        """Return the filter that an array of the CloudEvents Subscriptions API describes.

        It is a JSON value from an untrusted document, which messages call `place`: a list of
        objects, one dialect each. SQL expressions can call `functions`.

        Raises `BadInput` with the place of the first fault, as in
        `filters[0].all[1].range["/price"].min`.
        """
        return Filter(parse_filters(filters, place, functions))

    def matches(self, publication: PublicationView) -> bool:
        """Does the publication pass?"""
        try:
            return self._test(publication)
        except AttributeError:
            check_publication("publication", publication)
            raise

    def document(self) -> list[object]:
        """Return the array that `parse` reads as this filter."""
        return [_document(part) for part in self.parts]

    def __getstate__(self) -> dict[str, object]:
        # The test is made of closures, which stay in this process.
        return {"parts": self.parts}

    @cached_property
    def _test(self) -> _Test:
        return _all_of([_test(part) for part in self.parts])


def _test(node: Node) -> _Test:
    """Return the function that answers for `node`; the depth of a filter is limited."""
    match node:
        case TextFilter(dialect, entries):
            return _all_of([_TEXT_TESTS[dialect](key, text) for key, text in entries])
        case Range(entries):
            return _all_of([_lies_in(key, interval) for key, interval in entries])
        case All(parts):
            return _all_of([_test(part) for part in parts])
        case AnyOf(parts):
            return _any_of([_test(part) for part in parts])
        case Not(part):
            inner = _test(part)
            return lambda publication: not inner(publication)
        case Sql(expression):
            return lambda publication: expression.passes(publication.attributes)


def _all_of(tests: list[_Test]) -> _Test:
    if len(tests) == 1:
        return tests[0]

    def all_of(publication: PublicationView) -> bool:
        for test in tests:  # noqa: SIM110 (a generator for `all` costs more than the tests)
            if not test(publication):
                return False
        return True

    return all_of


def _any_of(tests: list[_Test]) -> _Test:
    def any_of(publication: PublicationView) -> bool:
        for test in tests:  # noqa: SIM110 (a generator for `any` costs more than the tests)
            if test(publication):
                return True
        return False

    return any_of


def _is_text(key: str, text: str) -> _Test:
    return lambda publication: text_at(publication, key) == text


def _starts_with(key: str, text: str) -> _Test:
    def starts_with(publication: PublicationView) -> bool:
        found = text_at(publication, key)
        return found is not None and found.startswith(text)

    return starts_with


def _ends_with(key: str, text: str) -> _Test:
    def ends_with(publication: PublicationView) -> bool:
        found = text_at(publication, key)
        return found is not None and found.endswith(text)

    return ends_with


_TEXT_TESTS: dict[str, Callable[[str, str], _Test]] = {
    "exact": _is_text,
    "prefix": _starts_with,
    "suffix": _ends_with,
}


def _lies_in(key: str, interval: Interval) -> _Test:
    low, high = interval.low, interval.high

    def lies_in(publication: PublicationView) -> bool:
        found = number_at(publication, key)
        return found is not None and low <= found <= high

    return lies_in


def _document(node: Node) -> object:
    match node:
        case TextFilter(dialect, entries):
            return {dialect: dict(entries)}
        case Range(entries):
            return {"range": {key: interval.document() for key, interval in entries}}
        case All(parts):
            return {"all": [_document(part) for part in parts]}
        case AnyOf(parts):
            return {"any": [_document(part) for part in parts]}
        case Not(part):
            return {"not": _document(part)}
        case Sql(expression):
            return {"sql": expression.text}
