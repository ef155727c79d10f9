"""Studies of the matching index, in the order in which the report shows them."""

from __future__ import annotations

from benchmarks.filters import match_million, match_mixed

__all__ = ["STUDIES"]

STUDIES = (match_mixed.STUDY, match_million.STUDY)
