"""Compiled hot loops: the compiler setting that every package shares, and how code is kept."""

# mypy: allow-untyped-calls

from __future__ import annotations

import contextlib
import hashlib
import logging
import threading
import time
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core.caching import IndexDataCacheFile

__all__ = ["clock", "inner_kernel", "kernel"]

_F = TypeVar("_F", bound=Callable[..., object])
_log = logging.getLogger(__name__)


class _Clock:
    """A clock that stands still while any thread compiles or loads a hot loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._compiling = 0
        # When it was stopped, while it is; and for how long it was before.
        self._stopped = 0.0
        self._lost = 0.0

    def __call__(self) -> float:
        with self._lock:
            return (self._stopped if self._compiling else time.perf_counter()) - self._lost

    def stopping(self, function: _F) -> _F:
        """Return the function as one that stops the clock while it runs."""

        @wraps(function)
        def run(*args: object) -> object:
            with self._lock:
                if not self._compiling:
                    self._stopped = time.perf_counter()
                # A loop that calls another has that compiled too, within its own time.
                self._compiling += 1
            try:
                return function(*args)
            finally:
                with self._lock:
                    self._compiling -= 1
                    if not self._compiling:
                        self._lost += time.perf_counter() - self._stopped

        return cast(_F, run)


clock = _Clock()
"""Seconds for planners and their limits: what a method takes, and not what its compiler does.

The first plan on a machine compiles for some dozen seconds. As part of its own it would say
nothing about the method, and would use up most limits before the search begins.
"""


def kernel(function: _F) -> _F:
    """Compile a hot loop once per machine and run it without the interpreter lock.

    `fastmath` stays off: it reorders sums, and then two runs of one seed differ.
    Threads come from Python (kernels release the lock) rather than from Numba's
    own layers, which do not survive a fork and so would break Spark's workers.
    """
    return cast(_F, _dispatcher(function, no_cpython_wrapper=False))


def inner_kernel(function: _F) -> _F:
    """Compile a loop that other kernels call, and that Python cannot.

    What takes arguments from Python is left out: for a tuple of some dozen arrays that is
    most of what there is to compile.
    """
    dispatcher = _dispatcher(function, no_cpython_wrapper=True)
    if dispatcher is function:
        return function

    def refuse(*_: object) -> None:
        raise TypeError(f"{function.__name__} can only be called by other kernels")

    # Numba would jump to where the missing code is not.
    dispatcher._insert = lambda *_: None
    dispatcher._compile_for_args = refuse
    return cast(_F, dispatcher)


def _dispatcher(function: Callable[..., object], *, no_cpython_wrapper: bool) -> Any:
    if cast(Any, numba).config.DISABLE_JIT:  # somebody is looking for a fault in a kernel
        return function
    compiled: Any = numba.njit
    dispatcher = compiled(
        cache=True,
        nogil=True,
        error_model="numpy",
        no_cfunc_wrapper=True,
        no_cpython_wrapper=no_cpython_wrapper,
    )(function)
    cache = dispatcher._cache
    cache._cache_file = _FilePerSignature(
        cache.cache_path, cache._impl.filename_base, _stamp(function, cache)
    )
    dispatcher.compile = clock.stopping(dispatcher.compile)
    type_call, unliteral = dispatcher.get_call_template, cast(Any, numba.types).unliteral

    # When a kernel calls another with a constant, Numba compiles the other for just that
    # constant; and also for the -1 that a variable starts with, before it has found out
    # what else is assigned to it. One signature for all of them is two thirds of the time.
    def type_call_of_variables(args: Any, kws: Any) -> Any:
        named = {name: unliteral(kind) for name, kind in kws.items()}
        return type_call(tuple(map(unliteral, args)), named)

    dispatcher.get_call_template = type_call_of_variables
    return dispatcher


def _stamp(function: Callable[..., object], cache: Any) -> bytes:
    """Return what the compiled code depends on: its file, and what that file imports.

    Numba looks at the file alone. But the code of a kernel contains the code of the kernels
    that it calls and the constants that it reads, so after an upgrade that changed only
    those, it would go on running the old ones.
    """
    text = hashlib.sha256(cache._impl.locator.get_source_stamp())
    for name, value in sorted(function.__globals__.items()):
        if isinstance(value, (int, float, tuple, np.generic)):
            text.update(f"{name} = {value!r}\n".encode())
        elif isinstance(getattr(value, "_cache", None), numba.core.caching.Cache):
            text.update(value._cache._cache_file._source_stamp)
    return text.digest()


class _FilePerSignature(IndexDataCacheFile):
    """The compiled signatures of one function, each in a file that is named after it.

    Numba numbers these files in an index that it reads, changes and writes back. Two processes
    that compile one function at once can then give two signatures the same number, and the
    next process runs the code of one on the arrays of the other. Without an index they at
    worst write the same code twice; so set-up compiles on every core, and so may tests and
    Spark's workers when they run first.
    """

    def save(self, key: tuple[Any, ...], data: object) -> None:
        """Keep the code of one signature; the file appears whole or not at all."""
        # Where the disk is full, the next process compiles again.
        with contextlib.suppress(OSError):
            self._save_data(self._name_of(key), (self._source_stamp, key, data))

    def load(self, key: tuple[Any, ...]) -> object:
        """Return the code of one signature, or None if there is none from this source."""
        try:
            stamp, kept, data = self._load_data(self._name_of(key))
        except Exception:
            # Not there, damaged, or of a version in which a type stood in another module: a
            # pickle can fail with any error, and all that is lost is the time to compile.
            stamp = kept = data = None
        if (stamp, kept) == (self._source_stamp, key):
            return data
        _tell_compiling()
        return None

    def _name_of(self, key: tuple[Any, ...]) -> str:
        # The text of a type stands for it here, and `load` compares the types themselves:
        # pickles of one type differ from process to process.
        signature, target, _ = key
        text = repr((self._version, [str(part) for part in signature], target))
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        return f"{self._index_name.removesuffix('.nbi')}.{digest}.nbc"


@cache
def _tell_compiling() -> None:
    """Say, once in a process, why this takes longer than it will the next time."""
    _log.info("compiling, once: this has not run on this machine before")


# Numba sets itself up on the first call of any compiled function, which takes a quarter of
# a second. A signature makes that happen here, when the package is loaded, and not in the
# middle of somebody's first plan.
@cast(Callable[[_F], _F], numba.njit("void()", cache=True))
def _start() -> None:
    """Do nothing, compiled."""
