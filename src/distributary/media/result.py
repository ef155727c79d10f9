"""What comes out of a conversion."""

from __future__ import annotations

from dataclasses import dataclass, field

from distributary.content.media_type import MediaType

__all__ = ["ConversionResult"]


@dataclass(frozen=True)
class ConversionResult:
    """Content in the format that was asked for.

    Attributes
    ----------
    content
        The content itself.
    media_type
        The format that was asked for.
    seconds
        Processor time inside the converter, as measured in the worker. For content that was
        kept from an earlier conversion, the time which that one took.
    cached
        Whether it was kept from an earlier conversion.
    """

    content: bytes = field(repr=False)
    media_type: MediaType
    seconds: float
    cached: bool
