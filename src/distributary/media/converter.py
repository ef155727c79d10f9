"""What a converter is: one class that reads some formats and writes others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import ClassVar

from distributary.content.media_type import MediaType
from distributary.media.limits import Limits

__all__ = ["Converter"]


class Converter(ABC):
    """Turns content of some formats into others.

    A converter is made without arguments, in the caller to say what it can do and in a
    worker to do it. Its packages are imported by `version` and `convert` alone, so that
    it can be listed where they are not installed.

    Attributes
    ----------
    name
        What people call it, in lower case with hyphens.
    packages
        What has to be importable for it to work, as (module, extra of distributary).
    parameters
        What its targets may say beside their type: names, and what each may be, for people.
    suffixes
        Ends of names, such as `.morse`, and the format that a file of this name has. Those that
        distributary knows already stay what they are.
    """

    name: ClassVar[str]
    packages: ClassVar[tuple[tuple[str, str], ...]] = ()
    parameters: ClassVar[Mapping[str, str]] = {}
    suffixes: ClassVar[Mapping[str, MediaType]] = {}

    @property
    @abstractmethod
    def version(self) -> str:
        """What its output depends on beside the content: own revision, versions of codecs.

        Part of the key under which results are kept: when it changes, they are made anew.
        """

    @abstractmethod
    def conversions(self) -> Iterable[tuple[MediaType, MediaType]]:
        """Return the conversions to list, to calibrate and to plan with, (source, target)."""

    @abstractmethod
    def converts(self, source: MediaType, target: MediaType) -> bool:
        """Whether this converter does that conversion, listed or not.

        A source without parameters is any content of its type. A parameter of the target
        that is unknown or out of range is a conversion that does not exist.
        """

    @abstractmethod
    def convert(
        self, content: bytes, source: MediaType, target: MediaType, limits: Limits
    ) -> bytes:
        """Return the content in the target format.

        Runs in a worker that can be killed. Raises `Unconvertible` when the content cannot be
        converted; any other exception is reported as a fault of the converter.
        """
