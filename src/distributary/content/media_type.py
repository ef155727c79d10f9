"""Media types: `image/jpeg;width=640`, as they name formats and as devices ask for them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from distributary.arguments import checked_fields
from distributary.errors import BadInput, quoted

__all__ = ["MEDIA_TYPE_CHARACTERS_MAX", "MediaType"]

MEDIA_TYPE_CHARACTERS_MAX = 1024

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # noqa: S105  (the token of RFC 9110, not a secret)
_ESSENCE = re.compile(rf"[ \t]*({_TOKEN})/({_TOKEN})[ \t]*")
_QUOTED = r'"((?:[^"\\\x00-\x08\x0a-\x1f\x7f]|\\[\t\x20-\x7e])*)"'
_PARAMETER = re.compile(rf";[ \t]*(?:({_TOKEN})=(?:({_TOKEN})|{_QUOTED}))?[ \t]*")
_TOKEN_ALONE = re.compile(_TOKEN)


@checked_fields
@dataclass(frozen=True)
class MediaType:
    """A media type with its parameters.

    Type, subtype and the names of parameters are in lower case, as case does not count
    there. Values of parameters keep theirs.

    Attributes
    ----------
    type, subtype
        The two halves; either may be `*` in what a device accepts.
    parameters
        Values by name.
    """

    type: str
    subtype: str
    parameters: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: object, *, place: str = "media type") -> MediaType:
        """Return the media type that `text` says (RFC 9110, section 8.3.1)."""
        if not isinstance(text, str):
            raise BadInput(place, "must be a media type, such as 'image/jpeg'")
        if len(text) > MEDIA_TYPE_CHARACTERS_MAX:
            raise BadInput(
                place,
                f"has {len(text):,} characters; a media type has at most "
                f"{MEDIA_TYPE_CHARACTERS_MAX:,}",
            )
        match = _ESSENCE.match(text)
        if match is None:
            raise BadInput(
                place, f"{quoted(text)} is not a media type", hint="write it as in 'image/jpeg'"
            )
        kind, subtype = match[1].lower(), match[2].lower()
        parameters: dict[str, str] = {}
        position = match.end()
        while position < len(text):
            match = _PARAMETER.match(text, position)
            if match is None:
                raise BadInput(
                    place,
                    f"{quoted(text)} has no parameter at position {position + 1}",
                    hint="write parameters as in 'image/jpeg;width=640'",
                )
            position = match.end()
            if match[1] is not None:
                name = match[1].lower()
                if name in parameters:
                    raise BadInput(place, f"{quoted(text)} gives {quoted(name)} twice")
                value = match[2] if match[3] is None else re.sub(r"\\(.)", r"\1", match[3])
                parameters[name] = value
        return cls(kind, subtype, parameters)

    @property
    def essence(self) -> str:
        """Type and subtype, without parameters."""
        return f"{self.type}/{self.subtype}"

    @property
    def is_json(self) -> bool:
        """Whether content of this type is JSON, as CloudEvents decides it."""
        return self.subtype == "json" or self.subtype.endswith("+json")

    @property
    def is_text(self) -> bool:
        """Whether content of this type is written as text in JSON, rather than as Base64."""
        return self.type == "text" or self.subtype == "xml" or self.subtype.endswith("+xml")

    @property
    def has_wildcard(self) -> bool:
        """Whether this names many types, as `image/*` does."""
        return "*" in (self.type, self.subtype)

    def admits(self, other: MediaType) -> bool:
        """Whether `other` is of this type: halves agree, and every parameter listed here.

        Parameters that only `other` has do not matter. Values are compared without regard
        to case, as those of media types in use (charsets, codecs, numbers) are.
        """
        return (
            self.type in ("*", other.type)
            and self.subtype in ("*", other.subtype)
            and all(
                name in other.parameters and other.parameters[name].lower() == value.lower()
                for name, value in self.parameters.items()
            )
        )

    def __str__(self) -> str:
        return self.essence + "".join(
            f";{name}={_written(value)}" for name, value in self.parameters.items()
        )


def _written(value: str) -> str:
    if _TOKEN_ALONE.fullmatch(value):
        return value
    return '"' + re.sub(r'(["\\])', r"\\\1", value) + '"'
