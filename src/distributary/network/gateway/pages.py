"""Pages: what a gateway serves to people, which whoever starts it gives to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from litestar.types import ControllerRouterHandler

__all__ = ["NO_PAGES", "PageRoutes"]


class PageRoutes(NamedTuple):
    """Routes of pages.

    Attributes
    ----------
    routes
        Returns them, in the process that serves them.
    landing
        Where somebody is who has logged in.
    """

    routes: Callable[[], Sequence[ControllerRouterHandler]]
    landing: str


NO_PAGES = PageRoutes(lambda: (), "/docs")
"""Without any, people are shown the document of the interface."""
