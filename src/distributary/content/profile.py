"""Device profiles: what a device can use, and which format it should get.

A profile is like HTTP's `Accept`, with the screen and the bandwidth of the device::

    {"accept": ["image/webp", "image/*;q=0.8", "text/plain;q=0.5"],
     "screen": {"width": 390, "height": 844},
     "bandwidth_kbps": 2000}
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from distributary.arguments import checked, checked_fields
from distributary.content.fields import Record
from distributary.content.media_type import MediaType
from distributary.errors import BadInput, quoted

__all__ = ["ENTRIES_MAX", "AcceptEntry", "DeviceProfile", "Screen"]

ENTRIES_MAX = 64
_PIXELS_MAX = 1_000_000
_ACCEPT_CHARACTERS_MAX = 8192
_WEIGHT = re.compile(r"0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?")
_SCREEN = re.compile(r"([1-9][0-9]{0,6})x([1-9][0-9]{0,6})")
# Commas inside of quoted strings do not end an entry.
_ACCEPT_ENTRY = re.compile(r'(?:[^,"]|"(?:[^"\\]|\\.)*")+')
_BITRATE = re.compile(r"([0-9]{1,12})([kKmM]?)")


@dataclass(frozen=True)
class AcceptEntry:
    """One line of what a device accepts.

    The type may have wildcards, and every parameter listed must agree; the weight is the q-value,
    from 0 (not acceptable) to 1.
    """

    media_type: MediaType
    weight: float = 1.0

    @classmethod
    def parse(cls, text: object, *, place: str = "accept") -> AcceptEntry:
        """Return the entry that `text` says, as in `image/*;q=0.8`."""
        parsed = MediaType.parse(text, place=place)
        if parsed.type == "*" and parsed.subtype != "*":
            raise BadInput(place, f"{quoted(text)} has a subtype of no type")
        parameters = dict(parsed.parameters)
        written = parameters.pop("q", "1")
        if _WEIGHT.fullmatch(written) is None:
            raise BadInput(
                place, f"q must be between 0 and 1 with at most 3 digits, not {quoted(written)}"
            )
        return cls(MediaType(parsed.type, parsed.subtype, parameters), float(written))

    @property
    def specificity(self) -> tuple[bool, bool, int]:
        """How narrow the entry is, for comparison with others."""
        kind = self.media_type
        return kind.type != "*", kind.subtype != "*", len(kind.parameters)

    def __str__(self) -> str:
        weight = "" if self.weight == 1.0 else f";q={self.weight:g}"
        return f"{self.media_type}{weight}"


@dataclass(frozen=True)
class Screen:
    """The size of a screen in pixels."""

    width: int
    height: int


@checked_fields
@dataclass(frozen=True)
class DeviceProfile:
    """What a subscriber's device can use.

    Attributes
    ----------
    accept
        Media types as they were listed.
    screen
        Pictures and videos no larger than this are wanted.
    bandwidth_kbps
        Sound and video of no more kilobits per second are wanted.
    """

    accept: tuple[AcceptEntry, ...]
    screen: Screen | None = None
    bandwidth_kbps: float | None = None

    @classmethod
    def parse(cls, document: object) -> DeviceProfile:
        """Return the profile in a document.

        `accept` is a list, or one text as in the HTTP header; `screen` is an object, or a
        text such as `390x844`.
        """
        return cls.from_record(Record(document, "profile"))

    @classmethod
    @checked
    def from_record(cls, record: Record) -> DeviceProfile:
        """Return the profile in one object of a larger document."""
        record.check_keys(("accept", "screen", "bandwidth_kbps"), "a profile")
        bandwidth = None
        if record.given("bandwidth_kbps"):
            bandwidth = record.number("bandwidth_kbps", positive=True)
        return cls(_accept_from(record), _screen_from(record), bandwidth)

    def document(self) -> dict[str, object]:
        """Return the profile as plain data; `parse` reads it back."""
        document: dict[str, object] = {"accept": [str(entry) for entry in self.accept]}
        if self.screen is not None:
            document["screen"] = {"width": self.screen.width, "height": self.screen.height}
        if self.bandwidth_kbps is not None:
            document["bandwidth_kbps"] = self.bandwidth_kbps
        return document

    def entries(self) -> list[AcceptEntry]:
        """Return the acceptable entries, best first: by weight, then by position."""
        return sorted(
            (entry for entry in self.accept if entry.weight > 0.0), key=lambda e: -e.weight
        )

    def refuses(self, media_type: MediaType) -> bool:
        """Whether the narrowest entry about this type, if there is one, says `q=0`."""
        about = [entry for entry in self.accept if entry.media_type.admits(media_type)]
        # Of entries that are equally narrow, the kinder one counts.
        narrowest = max(about, key=lambda e: (e.specificity, e.weight), default=None)
        return narrowest is not None and narrowest.weight == 0.0

    def fits(self, media_type: MediaType) -> bool:
        """Whether a format is not known to exceed the screen or the bandwidth.

        Formats state `width` and `height` in pixels and `bitrate` in bits per second, as
        in `bitrate=200k`. What a format does not state is not known to be too much.
        """
        limits: list[tuple[str, float]] = []
        if self.screen is not None:
            limits = [("width", self.screen.width), ("height", self.screen.height)]
        if self.bandwidth_kbps is not None:
            limits.append(("bitrate", self.bandwidth_kbps * 1e3))
        for parameter, limit in limits:
            amount = stated(media_type, parameter)
            if amount is not None and amount > limit:
                return False
        return True

    def unknown_count(self, media_type: MediaType) -> int:
        """Return how many limits a format leaves open that its kind could state."""
        no_width = self.screen is not None and stated(media_type, "width") is None
        no_bitrate = self.bandwidth_kbps is not None and stated(media_type, "bitrate") is None
        return (no_width and media_type.type in ("image", "video")) + (
            no_bitrate and media_type.type in ("audio", "video")
        )


def stated(media_type: MediaType, parameter: str) -> float | None:
    """Return the amount that a parameter of a format states, if it does: `200k` is 200,000."""
    match = _BITRATE.fullmatch(media_type.parameters.get(parameter, ""))
    if match is None:
        return None
    return int(match[1]) * {"": 1.0, "k": 1e3, "m": 1e6}[match[2].lower()]


def _accept_from(record: Record) -> tuple[AcceptEntry, ...]:
    place = record.place("accept")
    value = record.value("accept")
    if isinstance(value, str):
        # Finding quoted strings that do not end takes time that grows with the square.
        if len(value) > _ACCEPT_CHARACTERS_MAX:
            raise BadInput(place, f"has more than {_ACCEPT_CHARACTERS_MAX:,} characters")
        texts: list[object] = [text for text in _ACCEPT_ENTRY.findall(value) if text.strip()]
        if re.sub(r"[,\s]", "", _ACCEPT_ENTRY.sub("", value)):
            raise BadInput(place, f"{quoted(value)} has a quoted string that does not end")
        if len(texts) > ENTRIES_MAX:
            raise BadInput(place, f"has more than {ENTRIES_MAX} entries")
    else:
        texts = record.entries("accept", count_max=ENTRIES_MAX)
    entries = tuple(
        AcceptEntry.parse(text, place=f"{place}[{index}]") for index, text in enumerate(texts)
    )
    if not any(entry.weight > 0.0 for entry in entries):
        raise BadInput(place, "accepts nothing", hint="'*/*' accepts everything")
    return entries


def _screen_from(record: Record) -> Screen | None:
    if not record.given("screen"):
        return None
    place = record.place("screen")
    value = record.value("screen")
    if isinstance(value, str):
        match = _SCREEN.fullmatch(value)
        if match is None:
            raise BadInput(place, f"{quoted(value)} is not a size", hint="write it as in '390x844'")
        return Screen(_side(place, int(match[1])), _side(place, int(match[2])))
    sides = record.record("screen")
    return Screen(
        _side(sides.place("width"), sides.value("width")),
        _side(sides.place("height"), sides.value("height")),
    )


def _side(place: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _PIXELS_MAX:
        raise BadInput(place, f"must be a whole number between 1 and {_PIXELS_MAX:,}")
    return value
