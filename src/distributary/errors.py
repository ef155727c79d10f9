"""Everything distributary raises on purpose.

DistributaryError
  BadInput          a file, option or argument breaks the rules; names the place
    WrongType       an argument is of another type; a `TypeError` as well
  TooLarge          a method would exceed its budget of time or memory; says by how much
  InvalidPlan       a plan breaks the model: something is used where it is not available
  MethodFailed      a planner method of somebody else fails, or makes no valid plan; names it
  InfeasiblePlan    no plan meets the capacities; says what is short, and by how much
  MissingPackage    an optional package is not installed; says how to install it
  PipelineFailed    a step on Spark failed; names the step and the data
  TableBusy         another run has written the same table meanwhile; names both
  ConversionFailed  content could not be converted (defined in `media.failure`)
  RequestRefused    a gateway refused what a client asked for (defined in `client.failure`)
  GatewayAway       a gateway does not answer (defined in `client.failure`)
  SubscriptionEnded a subscription ended by itself (defined in `client.failure`)
  SubscriptionTaken a newer connection reads a subscription (defined in `client.failure`)
  JournalDamaged    a broker's disk does not give back what was written; names the record
  ProtocolError     the rules between brokers were broken
    LocalMisuse     by whoever hosts a broker
    PeerMisbehaved  by the other side; names it

Messages are one line each, so that a command can print them as they are, and end
with ``hint: ...`` when there is something to do.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "BadInput",
    "DistributaryError",
    "InfeasiblePlan",
    "InvalidPlan",
    "JournalDamaged",
    "LocalMisuse",
    "MethodFailed",
    "MissingPackage",
    "PeerMisbehaved",
    "PipelineFailed",
    "ProtocolError",
    "TableBusy",
    "TooLarge",
    "WrongType",
    "counted",
    "first_line",
    "quoted",
]

# Names come from untrusted files: a message quotes at most this much of one.
_QUOTED_CHARACTERS_MAX = 60
# What other people's code says when it fails may be pages.
_REASON_CHARACTERS_MAX = 300


def quoted(name: object, characters_max: int = _QUOTED_CHARACTERS_MAX) -> str:
    """Return `name` quoted for a message: on one line, escaped and cut short."""
    text = name if isinstance(name, str) else str(name)
    if len(text) > characters_max:
        text = text[: characters_max - 3] + "..."
    return repr(text)


def first_line(error: BaseException) -> str:
    """Return what an error says first: what other people's code says may go on for pages."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return how many there are of something, as words: "1 user", "2,000 users".

    The plural has an s unless given.
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


class DistributaryError(Exception):
    """Base of every error that distributary raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors cross from processes that work for us, as they are: by default they would be made
        # anew from their text, which is not what they are made from.
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[DistributaryError], args: Any, fields: dict[str, Any]) -> Exception:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(fields)
    return error


class BadInput(DistributaryError, ValueError):
    """Something handed to us breaks the rules.

    `place` is the offending field, node, file or option; `hint` is what to do about it, if there is
    something to do.
    """

    def __init__(self, place: str, problem: str, *, hint: str | None = None) -> None:
        self.place = place
        self.problem = problem
        self.hint = hint
        super().__init__(f"{place}: {problem}" + (f"; hint: {hint}" if hint else ""))

    def within(self, place: str) -> BadInput:
        """Return the same error, seen from the file or option that contains the place."""
        return BadInput(f"{place}: {self.place}", self.problem, hint=self.hint)


class WrongType(BadInput, TypeError):
    """An argument is of a type that its function does not take."""


class TooLarge(DistributaryError):
    """A method would need more time or memory than it is allowed.

    It carries the estimate for this instance.
    """

    def __init__(self, message: str, *, seconds: float, memory_bytes: float) -> None:
        self.seconds = seconds
        self.memory_bytes = memory_bytes
        super().__init__(message)


class InvalidPlan(DistributaryError):
    """A plan uses something where it is not available."""

    def __init__(self, node: str, problem: str) -> None:
        self.node = node
        super().__init__(f"node {quoted(node)}: {problem}")


class MethodFailed(DistributaryError):
    """A planner method that is not ours failed, or what it returned is not a valid plan.

    `package` is who brought it, None for a function of the same program.
    """

    def __init__(self, method: str, package: str | None, reason: BaseException) -> None:
        self.method = method
        self.package = package
        said = " ".join(str(reason).split())[:_REASON_CHARACTERS_MAX]
        if not isinstance(reason, DistributaryError):
            said = f"{type(reason).__name__}: {said}" if said else type(reason).__name__
        whose = f"the package {quoted(package)}" if package else "the function"
        super().__init__(
            f"method {quoted(method)} failed: {said}; "
            f"hint: it is not one of distributary's; mend {whose}, or choose another method"
        )


class InfeasiblePlan(DistributaryError):
    """No plan meets the capacities, or none was found.

    `shortfall` is how much capacity is missing, in the unit of the capacities.
    """

    def __init__(self, message: str, *, shortfall: float) -> None:
        self.shortfall = shortfall
        super().__init__(message)


class MissingPackage(DistributaryError):
    """Something optional was asked for that is not installed.

    `extra` is the extra of distributary that brings it.
    """

    def __init__(self, package: str, *, extra: str, purpose: str) -> None:
        self.package = package
        self.extra = extra
        super().__init__(
            f"{purpose} needs {package}, which is not installed; "
            f'hint: pip install "distributary[{extra}]"'
        )


class PipelineFailed(DistributaryError):
    """A step of the pipeline failed on Spark, through no fault of the data that we know of."""

    def __init__(self, step: str, dataset: str, reason: str) -> None:
        self.step = step
        self.dataset = dataset
        super().__init__(f"{step} failed on {dataset}: {reason}")


class TableBusy(DistributaryError):
    """Another run has changed what this one wanted to replace.

    `table` is where it is, and `run` who was faster.
    """

    def __init__(self, table: str, run: str) -> None:
        self.table = table
        self.run = run
        super().__init__(
            f"{table}: another run, {quoted(run)}, has written this meanwhile, and nothing of it "
            "was replaced; hint: start this one again when no other is running"
        )


class JournalDamaged(DistributaryError):
    """A record in the journal of a broker cannot be read.

    The key is "" when it is the journal as a whole.
    """

    def __init__(self, broker: str, key: str, problem: str) -> None:
        self.broker = broker
        self.key = key
        what = f"the record {quoted(key)}" if key else "it"
        super().__init__(
            f"journal of broker {broker}: {what} cannot be read: {problem}; "
            "hint: bring the disk back from a copy, or let the broker join anew with an empty one"
        )


class ProtocolError(DistributaryError):
    """The rules between brokers, clients and hosts were broken."""


class LocalMisuse(ProtocolError):
    """A host used its broker in a way that the contract forbids."""


class PeerMisbehaved(ProtocolError):
    """The other side sent something that no broker or client sends."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(problem)
