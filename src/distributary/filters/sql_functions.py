"""The functions of CESQL: the built-in ones, and those that users add."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from distributary.errors import BadInput, quoted
from distributary.filters.evaluation import ErrorKind
from distributary.filters.sql_casts import INTEGER_MAX, INTEGER_MIN
from distributary.filters.sql_tokens import FUNCTION_NAME, KEYWORDS
from distributary.filters.sql_tree import Value, ValueType

__all__ = ["Function", "FunctionFailed", "Functions"]


class FunctionFailed(Exception):
    """Raised by a function that has an error to report, with the value to go on with.

    Without a value it is the zero value of the function's type.
    """

    def __init__(
        self,
        message: str,
        *,
        value: Value | None = None,
        kind: ErrorKind = ErrorKind.FUNCTION_EVALUATION,
    ) -> None:
        self.value = value
        self.kind = kind
        super().__init__(message)


@dataclass(frozen=True)
class Function:
    """A function that expressions can call.

    Attributes
    ----------
    name
        Letters and underscores, in any case: names are compared without it.
    parameters
        Types that the first arguments are cast to; None takes a value of any type as it is.
    returns
        The type of the result.
    call
        Computes the result from the arguments. It must not change anything, and may raise
        `FunctionFailed`. Any other exception, or a result of another type, becomes an error
        of the evaluation too, with the zero value for a result.
    rest
        The type of any number of further arguments, for a variadic function.
    """

    name: str
    parameters: tuple[ValueType | None, ...]
    returns: ValueType
    call: Callable[..., object]
    rest: ValueType | None = None

    def takes(self, count: int) -> bool:
        """Tell whether a call with that many arguments is a call of this function."""
        fixed = len(self.parameters)
        return count == fixed or (self.rest is not None and count > fixed)

    def parameter(self, index: int) -> ValueType | None:
        """Return the type that the argument at `index` is cast to."""
        return self.parameters[index] if index < len(self.parameters) else self.rest

    def valid(self, value: object) -> Value | None:
        """Return `value` if it is of the type this function returns, else None."""
        match self.returns:
            case ValueType.STRING if isinstance(value, str):
                return str.__str__(value)
            case ValueType.BOOLEAN if isinstance(value, bool):
                return value
            case ValueType.INTEGER if isinstance(value, int) and not isinstance(value, bool):
                return int(value) if INTEGER_MIN <= value <= INTEGER_MAX else None
        return None


class Functions:
    """The functions that expressions can call, found by name and number of arguments.

    A registry never changes, so that what an expression means does not depend on when it
    was made. `extended` gives a new one.
    """

    __slots__ = ("_by_name",)

    def __init__(self, functions: Iterable[Function] = ()) -> None:
        by_name: dict[str, tuple[Function, ...]] = {}
        for function in functions:
            _add(by_name, function)
        self._by_name: Mapping[str, tuple[Function, ...]] = MappingProxyType(by_name)

    def __reduce__(self) -> tuple[object, ...]:
        # The built-in ones are sent to another process by name: there as here, expressions
        # are equal only if they call the same registry.
        if self is _built_ins():
            return _built_ins, ()
        every = (function for overloads in self._by_name.values() for function in overloads)
        return Functions, (tuple(every),)

    def extended(self, *functions: Function) -> Functions:
        """Return these functions and the ones given.

        Raises `BadInput` for a name that no expression can call, and where a call could mean two
        functions: the same name and number of arguments, or a number of arguments that a variadic
        function of that name takes too.
        """
        mine = (function for overloads in self._by_name.values() for function in overloads)
        return Functions((*mine, *functions))

    def find(self, name: str, count: int) -> Function | None:
        """Return the function that a call by that name with `count` arguments means."""
        for function in self._by_name.get(name.upper(), ()):
            if function.takes(count):
                return function
        return None


def _built_ins() -> Functions:
    from distributary.filters.sql_built_ins import BUILT_INS

    return BUILT_INS


def _add(by_name: dict[str, tuple[Function, ...]], function: Function) -> None:
    place = f"function {quoted(function.name)}"
    if FUNCTION_NAME.fullmatch(function.name) is None or function.name.upper() in KEYWORDS:
        raise BadInput(
            place,
            "is not a name that an expression can call",
            hint="use letters and underscores, start with a letter, and avoid keywords",
        )
    name = function.name.upper()
    overloads = by_name.get(name, ())
    for other in overloads:
        fewer, more = sorted((function, other), key=lambda each: len(each.parameters))
        if fewer.takes(len(more.parameters)) or (fewer.rest and more.rest):
            raise BadInput(
                place,
                f"with {_arity(function)} cannot be told from the one with {_arity(other)}",
            )
    by_name[name] = (*overloads, function)


def _arity(function: Function) -> str:
    more = " or more" if function.rest is not None else ""
    count = len(function.parameters)
    return f"{count}{more} argument{'' if count == 1 and not more else 's'}"
