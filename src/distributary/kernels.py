"""The compiler setting that every package shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

__all__ = ["kernel"]

_F = TypeVar("_F", bound=Callable[..., object])


def kernel(function: _F) -> _F:
    """Compile a hot loop once per machine and run it without the interpreter lock.

    `fastmath` stays off: it reorders sums, and then two runs of one seed differ.
    Threads come from Python (kernels release the lock) rather than from Numba's
    own layers, which do not survive a fork and so would break Spark's workers.
    """
    return cast(_F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))


# Numba sets itself up on the first call of any compiled function, which takes a quarter of
# a second. A signature makes that happen here, when the package is loaded, and not in the
# middle of somebody's first plan.
@cast(Callable[[_F], _F], numba.njit("void()", cache=True))
def _start() -> None:
    """Do nothing, compiled."""
