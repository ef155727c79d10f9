"""Server-sent events read slowly: the whole text at once, line by line, as the standard says it."""

from __future__ import annotations

__all__ = ["messages_of"]


def messages_of(stream: bytes) -> list[tuple[str, str | None, str]]:
    """Return (data, id, event) of every message in a stream that has ended."""
    text = stream.decode("utf-8", "replace").removeprefix("\ufeff")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    found = []
    data: list[str] = []
    identifier: str | None = None
    event = ""
    # What follows the last line end is no whole line.
    for line in lines[:-1]:
        if line == "":
            if data:
                found.append(("\n".join(data), identifier, event))
            data, identifier, event = [], None, ""
            continue
        name, _, value = line.partition(":")
        if value.startswith(" "):
            value = value[1:]
        if name == "data":
            data.append(value)
        elif name == "id" and "\0" not in value:
            identifier = value
        elif name == "event":
            event = value
    return found
