"""Which problems are solved in one compiled pass."""

from __future__ import annotations

import pytest

from distributary.placement.compact import is_compact
from distributary.placement.generate import generate_problem
from distributary.placement.useful import useful_formats


@pytest.mark.parametrize(
    ("formats", "brokers", "compact"), [(8, 64, True), (8, 20_000, True), (14, 600, False)]
)
def test_small_tables_take_one_pass_however_many_they_are(
    formats: int, brokers: int, compact: bool
) -> None:
    """Threads are worth their calls for many large tables, and never for small ones."""
    problem = generate_problem("dense", seed=1, formats=formats, brokers=brokers, tree="recursive")
    assert is_compact(problem, useful_formats(problem)) == compact
