"""Messages and durable records as bytes.

One byte of version, two of kind, then the fields in order as MessagePack. The kind is a
number that stays with its class, so that a class can be renamed. A version or a kind that is
not known is refused, and so is anything whose fields do not have their declared types:
bytes come from other machines and from disks.

An overlay is upgraded one broker after the other, each with the journal that it had. So the
version before is understood, and can be spoken: what has come since then is a field at the end,
with a default that stands for what was meant without it, or a kind of its own. Both say in which
version they came. The version before is not told of new fields of a message or record. Those
inside of its fields have names, and are ignored by who does not know them: that is how brokers
tell each other that they know more than they say. What else a release wants to change has to
wait until nobody is left who would misunderstand it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache, wraps
from operator import attrgetter
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, get_type_hints

import msgspec

from distributary.broker.addresses import Speaker
from distributary.errors import PeerMisbehaved

__all__ = [
    "DECODED_BYTES_MAX",
    "LARGE_ENTRIES",
    "MESSAGE_BYTES_MAX",
    "OLDEST",
    "SHORT_CHARACTERS",
    "VERSION",
    "Cached",
    "cached_by_text",
    "decode",
    "encodable",
    "encode",
    "fields_of",
    "is_spoken",
    "journal_key",
    "kind_name",
    "kind_of",
    "kinds",
    "replaced",
    "since",
    "speaker_of",
]


VERSION = 2
"""Of messages and records as they are now."""

OLDEST = VERSION - 1
"""The version before, which is understood as well."""

MESSAGE_BYTES_MAX = 512 * 2**10
"""What a message between brokers takes at most; what is larger goes in parts."""

DECODED_BYTES_MAX = 64 * 2**20
"""What a record takes at most, and a message that is put together from its parts."""

_SINCE = "since"
_HEAD = struct.Struct(">BH")
_ENCODER = msgspec.msgpack.Encoder()

_Class = TypeVar("_Class", bound=type)
_Message = TypeVar("_Message")


@dataclass(frozen=True)
class _Kind:
    number: int
    name: str
    type: type
    head: bytes
    fields: Callable[[Any], Any]
    single: bool
    said_by: Speaker | None
    since: int


_BY_TYPE: dict[type, _Kind] = {}
_BY_NUMBER: dict[int, _Kind] = {}
_NAMES: set[str] = set()
# By the bytes with which messages begin, of those kinds and versions alone that there are.
_READERS: dict[bytes, tuple[_Kind, msgspec.msgpack.Decoder[Any]]] = {}


def since(version: int, default: Any) -> Any:
    """Return a field that came with a version, at the end of a dataclass.

    Parameters
    ----------
    default
        What those mean who do not know the field.
    """
    return dataclasses.field(default=default, metadata={_SINCE: version})


def encodable(
    number: int, said_by: Speaker | None = None, *, since: int = OLDEST
) -> Callable[[_Class], _Class]:
    """Give a frozen dataclass its number on the wire and in journals.

    Parameters
    ----------
    number
        From 1 to 65,535, never used for another class, never changed.
    said_by
        Who sends it, if it is a message and not a record.
    since
        The version with which it came, if that is a new one.

    Notes
    -----
    No two classes have the same name either: reports and documents tell kinds apart by name.
    What comes of it is used as it is declared, but made in a sixth of the time.
    """

    def register(declared: _Class) -> _Class:
        assert dataclasses.is_dataclass(declared)
        cls: _Class = _struct(declared)
        assert 0 < number < 2**16
        assert number not in _BY_NUMBER, f"{number} is {_BY_NUMBER[number].name} already"
        assert cls.__name__ not in _NAMES, f"{cls.__name__} is the name of another kind"
        names = [field.name for field in dataclasses.fields(cls)]
        get = attrgetter(*names) if names else _nothing
        kind = _Kind(
            number,
            cls.__name__,
            cls,
            _HEAD.pack(VERSION, number),
            get,
            single=len(names) == 1,
            said_by=said_by,
            since=since,
        )
        _BY_TYPE[cls] = _BY_NUMBER[number] = kind
        _NAMES.add(kind.name)
        return cls

    return register


def _struct(declared: Any) -> Any:
    """Return what stands for a frozen dataclass: a struct with the same fields and methods.

    A dataclass that is frozen sets its fields one by one past its own guard. A broker makes
    several messages and records in every turn.
    """
    fields = []
    for field in dataclasses.fields(declared):
        default = () if field.default is dataclasses.MISSING else (field.default,)
        fields.append((field.name, field.type, *default))
    made = {"__slots__", "__match_args__", "__annotations__", "__dataclass_params__"}
    made.update(name for name, *_ in fields)
    own = {name: value for name, value in vars(declared).items() if name not in made}
    for name in ("init", "repr", "eq", "hash", "setattr", "delattr", "getstate", "setstate"):
        own.pop(f"__{name}__", None)
    return msgspec.defstruct(
        declared.__name__, fields, namespace=own, module=declared.__module__, frozen=True
    )


def kinds() -> dict[int, type]:
    """Return every class that can be encoded, by its number."""
    return {number: kind.type for number, kind in sorted(_BY_NUMBER.items())}


def kind_of(data: bytes) -> type | None:
    """Return the class of an encoded message without decoding it, if it is one that is known."""
    kind = _BY_NUMBER.get(int.from_bytes(data[1 : _HEAD.size], "big"))
    return None if kind is None else kind.type


def kind_name(message: object) -> str:
    """Return what a report calls the kind of a message."""
    return _BY_TYPE[type(message)].name


def speaker_of(kind: type) -> Speaker | None:
    """Return who says messages of a kind; None of what is no message."""
    known = _BY_TYPE.get(kind)
    return None if known is None else known.said_by


def is_spoken(message: object, version: int) -> bool:
    """Whether there are messages of this kind in a version."""
    return _BY_TYPE[type(message)].since <= version


def replaced(message: _Message, **fields: object) -> _Message:
    """Return a message or a record with others for some of its fields.

    As `dataclasses.replace` does, in a fifth of the time.
    """
    made: Any = message
    found: _Message = msgspec.structs.replace(made, **fields)
    return found


def encode(message: object, version: int = VERSION) -> bytes:
    """Return a message or a record as bytes, in this version or the one before."""
    kind = _BY_TYPE[type(message)]
    if version != VERSION:
        return _encode_older(kind, message, version)
    fields = kind.fields(message)
    return kind.head + _ENCODER.encode((fields,) if kind.single else fields)


def decode(data: bytes, newest: int = VERSION) -> Any:
    """Return the message or record in some bytes.

    Parameters
    ----------
    newest
        The newest version that is understood.

    Raises
    ------
    PeerMisbehaved
        When they are too many, of another version or kind, or not what the kind says.
    """
    if len(data) > DECODED_BYTES_MAX:
        raise PeerMisbehaved(f"a message of {len(data):,} bytes; at most {DECODED_BYTES_MAX:,}")
    head = data[: _HEAD.size]
    reader = _READERS.get(head) if newest == VERSION else None
    if reader is None:
        reader = _reader(head, newest)
        if newest == VERSION:
            _READERS[head] = reader
    kind, decoder = reader
    try:
        return kind.type(*decoder.decode(memoryview(data)[_HEAD.size :]))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PeerMisbehaved(f"a broken {kind.name}: {error}") from None


def _reader(head: bytes, newest: int) -> tuple[_Kind, msgspec.msgpack.Decoder[Any]]:
    """Return the kind of what begins with some bytes, and what reads its fields."""
    if len(head) < _HEAD.size:
        raise PeerMisbehaved(f"a message of {len(head)} bytes, which is cut short")
    version, number = _HEAD.unpack(head)
    if not OLDEST <= version <= newest:
        raise PeerMisbehaved(
            f"a message of version {version}; this broker speaks {OLDEST} to {newest}"
        )
    kind = _BY_NUMBER.get(number)
    if kind is None or kind.since > version:
        raise PeerMisbehaved(f"a message of the unknown kind {number}")
    return kind, _decoder(number, version)


def _nothing(_: object) -> tuple[()]:
    return ()


@cache
def _decoder(number: int, version: int) -> msgspec.msgpack.Decoder[Any]:
    cls = _BY_NUMBER[number].type
    hints = get_type_hints(cls)
    types = tuple(hints[field.name] for field in fields_of(cls, version))
    return msgspec.msgpack.Decoder(tuple[types] if types else tuple[()])  # type: ignore[valid-type]


def fields_of(cls: Any, version: int) -> list[dataclasses.Field[Any]]:
    """Return the fields that a dataclass has had since a version or before."""
    fields = dataclasses.fields(cls)
    return [field for field in fields if field.metadata.get(_SINCE, OLDEST) <= version]


def _encode_older(kind: _Kind, message: object, version: int) -> bytes:
    assert OLDEST <= version < VERSION, f"nobody speaks version {version} any more"
    assert kind.since <= version, f"{kind.name} came with version {kind.since}"
    fields = [getattr(message, field.name) for field in fields_of(kind.type, version)]
    return _HEAD.pack(version, kind.number) + _ENCODER.encode(fields)


@lru_cache(maxsize=8192)
def journal_key(*texts: str) -> str:
    """Return what stands for texts of clients in the key of a record.

    A store may limit how long keys are and what they contain, and clients write what they
    like. Records themselves say what they are about.
    """
    digest = hashlib.blake2b(digest_size=16)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


# Caches of what follows from a text, bounded in bytes and not only in entries.
#
# Most texts are short and come again; a few are as large as they may be. With one cache for both,
# as many large ones as there is room for short ones would take gigabytes.


SHORT_CHARACTERS = 4_096
LARGE_ENTRIES = 64

_P = ParamSpec("_P")
_R = TypeVar("_R")
_R_co = TypeVar("_R_co", covariant=True)


class Cached(Protocol[_P, _R_co]):
    """A function of a text that is cached."""

    def __call__(self, text: str, /, *args: _P.args, **kwargs: _P.kwargs) -> _R_co:
        """Return what follows from a text."""

    def misses(self) -> int:
        """Return how often that was not known."""

    def clear(self) -> None:
        """Forget everything."""


def cached_by_text(
    entries: int,
) -> Callable[[Callable[Concatenate[str, _P], _R]], Cached[_P, _R]]:
    """Cache a function of a text: so many short ones, and a few of the others."""

    def decorate(function: Callable[Concatenate[str, _P], _R]) -> Cached[_P, _R]:
        short = lru_cache(maxsize=entries)(function)
        large = lru_cache(maxsize=LARGE_ENTRIES)(function)

        @wraps(function)
        def cached(text: str, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
            cache = short if len(text) <= SHORT_CHARACTERS else large
            return cache(text, *args, **kwargs)  # type: ignore[arg-type]

        def clear() -> None:
            short.cache_clear()
            large.cache_clear()

        # A function and not an object with `__call__`: some are called for every event.
        found: Any = cached
        found.misses = lambda: short.cache_info().misses + large.cache_info().misses
        found.clear = clear
        whole: Cached[_P, _R] = found
        return whole

    return decorate
