"""JSON documents from untrusted files: read within limits, and written to be read.

Python's own reader lets through what no other JSON reader accepts (`NaN`, a key given
twice) and gives up with a traceback on what it cannot hold. Here all of that is one
`BadInput` that names the place.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from distributary.arguments import check_type
from distributary.errors import BadInput, quoted
from distributary.files import naming

__all__ = ["DOCUMENT_BYTES_MAX", "document_text", "parse_document", "place_of", "read_document"]

T = TypeVar("T")

DOCUMENT_BYTES_MAX = 256 * 2**20

# An integer with more digits than this is beyond every limit anyway, and Python
# refuses to convert very long ones; as a float it is simply infinite.
_INTEGER_DIGITS_MAX = 300
_KEY_CHARACTERS_MAX = 40
# An object with more entries than this is written as a list is, a line each.
_LINE_ENTRIES_MAX = 12
_STANDARD_INPUT = "/dev/stdin"


class _NotJson:
    """Stands for a literal such as NaN until its place in the document is known."""

    def __init__(self, literal: str) -> None:
        self.literal = literal


def place_of(parent: str, key: str) -> str:
    """Return the place of field `key` in the object at `parent`, as in `tree[3].wants`."""
    plain = key.isidentifier() and key.isascii() and len(key) <= _KEY_CHARACTERS_MAX
    shown = key if plain else quoted(key)
    return f"{parent}.{shown}" if parent else shown


def read_document(path: Path | str, parse: Callable[[object], T]) -> T:
    """Return what `parse` makes of the JSON document in the file at `path`.

    Whatever is wrong, with the file or in it, the error names the file.
    """
    check_type("path", path, Path, str)
    with naming("standard input" if str(path) == _STANDARD_INPUT else path):
        try:
            with Path(path).open("rb") as file:
                data = file.read(DOCUMENT_BYTES_MAX + 1)
        except ValueError as error:
            raise OSError(str(error)) from None  # A name that no file can have.
        return parse(parse_document(data))


def parse_document(data: bytes | str) -> object:
    """Return the JSON document that `data` holds.

    Numbers come back as they stand, infinite where they overflow: whoever reads the
    field knows its name and its range, and can say both.
    """
    if len(data) > DOCUMENT_BYTES_MAX:
        raise BadInput("document", f"is larger than {DOCUMENT_BYTES_MAX // 2**20} MiB")
    if isinstance(data, str):
        try:
            plain: object = _PLAIN.decode(data)
        except (ValueError, RecursionError, MemoryError):
            # Something is wrong with it, and is to be named.
            pass
        else:
            return plain
    literals: list[_NotJson] = []
    repeated: dict[int, str] = {}

    def remember_literal(literal: str) -> _NotJson:
        literals.append(_NotJson(literal))
        return literals[-1]

    # A repeated key is only noted here: the place of the object is known once the whole
    # document is. The objects stay reachable, or lie in one that is repeated itself.
    kept: list[dict[str, object]] = []

    def make_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            kept.append(fields)
            repeated[id(fields)] = Counter(key for key, _ in pairs).most_common(1)[0][0]
        return fields

    try:
        text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
        if not text.strip():
            raise BadInput("document", "is empty")
        document: object = json.loads(
            text,
            object_pairs_hook=make_object,
            parse_constant=remember_literal,
            parse_int=_integer,
        )
    except UnicodeDecodeError as error:
        raise BadInput(f"byte {error.start}", "is not UTF-8") from None
    except json.JSONDecodeError as error:
        reason = error.msg[:1].lower() + error.msg[1:]
        raise BadInput(
            f"line {error.lineno}, column {error.colno}", f"malformed JSON: {reason}"
        ) from None
    except RecursionError:
        raise BadInput("document", "is nested too deeply") from None
    except MemoryError:
        raise BadInput("document", "does not fit into memory") from None
    if literals or repeated:
        raise _first_fault(document, repeated)
    return document


def document_text(document: dict[str, object], *, ascii_only: bool = False) -> str:
    """Return `document` as JSON text: one line per field, and per entry of a list.

    A plan for a thousand brokers then has a line per broker, which people can read and
    line-based tools can compare. So has an object that is too long for a line.
    """

    def compact(value: object) -> str:
        return json.dumps(value, ensure_ascii=ascii_only, allow_nan=False)

    fields = []
    for key, value in document.items():
        if isinstance(value, list) and value:
            entries = ",\n  ".join(compact(entry) for entry in value)
            fields.append(f"{compact(key)}: [\n  {entries}]")
        elif isinstance(value, dict) and len(value) > _LINE_ENTRIES_MAX:
            entries = ",\n  ".join(f"{compact(k)}: {compact(v)}" for k, v in value.items())
            fields.append(f"{compact(key)}: {{\n  {entries}}}")
        else:
            fields.append(f"{compact(key)}: {compact(value)}")
    return "{" + ",\n ".join(fields) + "}\n"


def _integer(text: str) -> int | float:
    return int(text) if len(text) <= _INTEGER_DIGITS_MAX else float(text)


def _plain_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a key is repeated")
    return fields


def _no_literal(literal: str) -> object:
    raise ValueError(f"{literal} is not JSON")


# For what is as it should be, as nearly everything is: a decoder takes longer to make than
# to read an event.
_PLAIN = json.JSONDecoder(
    object_pairs_hook=_plain_object, parse_constant=_no_literal, parse_int=_integer
)


def _first_fault(document: object, repeated: dict[int, str]) -> BadInput:
    """Return the error for the first literal or repeated key, in the document's order.

    Walks with one iterator for each level, and names places only where it goes: a hostile
    document may have millions of entries beside its fault.
    """
    levels: list[tuple[str, Iterator[tuple[object, object]]]] = [("", iter([(None, document)]))]
    while levels:
        above, entries = levels[-1]
        for key, value in entries:
            if not isinstance(value, _NotJson | dict | list):
                continue
            place = above
            if key is not None:
                place = f"{above}[{key}]" if isinstance(key, int) else place_of(above, str(key))
            if isinstance(value, _NotJson):
                return BadInput(
                    place or "document",
                    f"is {value.literal}, which is not a number in JSON",
                    hint="write a finite number",
                )
            if isinstance(value, list):
                levels.append((place, iter(enumerate(value))))
            else:
                if id(value) in repeated:
                    return BadInput(place_of(place, repeated[id(value)]), "is given twice")
                levels.append((place, iter(value.items())))
            break
        else:
            levels.pop()
    raise AssertionError("a fault that was noted is somewhere in the document")
