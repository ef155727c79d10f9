"""What filters and content spaces read of a publication: the text or number at a key.

A key that starts with `/` is a JSON Pointer into `data`; any other is an attribute.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from distributary.arguments import kind_of
from distributary.content.attributes import AttributeValue, attribute_number, attribute_text
from distributary.errors import WrongType

__all__ = ["PublicationView", "check_publication", "number_at", "text_at"]


class PublicationView(Protocol):
    """What is read of a publication, which may also be the row of a table."""

    @property
    def attributes(self) -> Mapping[str, AttributeValue]:
        """The attributes by name."""

    @property
    def numbers(self) -> Mapping[str, float]:
        """The numbers in JSON data by JSON Pointer."""

    @property
    def texts(self) -> Mapping[str, str]:
        """The texts in JSON data by JSON Pointer."""


def check_publication(argument: str, value: object) -> None:
    """Raise `WrongType` unless `value` can be read like a publication."""
    for name in ("attributes", "numbers", "texts"):
        if not hasattr(value, name):
            raise WrongType(
                argument,
                f"must be a Publication, not {kind_of(value)}",
                hint="Publication.parse makes one of a mapping, parse_event of a text",
            )


def text_at(publication: PublicationView, key: str) -> str | None:
    """Return the text at `key`: the canonical text of an attribute, or a text in `data`."""
    if key.startswith("/"):
        return publication.texts.get(key)
    value = publication.attributes.get(key)
    if value is None or type(value) is str:
        return value
    return attribute_text(value)


def number_at(publication: PublicationView, key: str) -> float | None:
    """Return the number at `key`: a number in `data`, or an attribute that reads as one."""
    if key.startswith("/"):
        return publication.numbers.get(key)
    value = publication.attributes.get(key)
    return None if value is None else attribute_number(value)
