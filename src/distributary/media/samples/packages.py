"""Packages that samples are made with: imported when used, and asked for when missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from distributary.errors import MissingPackage

__all__ = ["needing"]


@contextmanager
def needing(package: str, *, extra: str, purpose: str) -> Iterator[None]:
    """Turn a failed import inside the block into the sentence that says what to install.

    Parameters
    ----------
    package
        What is imported, by the name under which it is installed.
    extra
        The extra of distributary that brings it.
    purpose
        What it is wanted for, as the beginning of a sentence.
    """
    try:
        yield
    except ImportError:
        raise MissingPackage(package, extra=extra, purpose=purpose) from None
