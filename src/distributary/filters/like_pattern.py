"""Patterns of `LIKE`, matched in time that a sender cannot blow up.

A pattern is cut at its `%` into segments of fixed length. The first is tied to the start of
the text and the last to its end; each one between takes the leftmost place after the one
before, which is right because a place further left leaves more for the rest. Translating to
a regular expression is shorter, but `%a%a%a%a%b` then tries every way to place the `a`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["LikePattern"]

# Almost every text has a segment at one of its first places, or nowhere.
_PLACES_TRIED = 16
_STRETCH_MIN = 512
# So many steps take no longer than the slowest function does on the same text.
_STEPS_PER_PASS = 128


@dataclass(frozen=True, slots=True)
class _Segment:
    """Text of fixed length, of which some characters may be anything.

    `runs` are the offset and the text of every stretch without `_`.
    """

    length: int
    runs: tuple[tuple[int, str], ...]

    @property
    def text(self) -> str | None:
        """The whole segment, if it has no `_`."""
        if not self.length:
            return ""
        return self.runs[0][1] if self.runs and len(self.runs[0][1]) == self.length else None

    def at(self, text: str, start: int) -> bool:
        """Tell whether the segment is in `text` at `start`."""
        return all(text.startswith(run, start + offset) for offset, run in self.runs)

    def find(self, text: str, start: int, end: int) -> int:
        """Return the leftmost place of the segment in `text[start:end]`, or -1."""
        whole = self.text
        if whole is not None:
            return text.find(whole, start, end)
        last = end - self.length
        if not self.runs or last < start:
            return start if last >= start else -1
        offset, run = self.runs[0]
        for _ in range(_PLACES_TRIED):
            start = text.find(run, start + offset, last + offset + len(run)) - offset
            if start < 0 or self.at(text, start):
                return max(start, -1)
            start += 1
        # In stretches that grow, so that a segment which is found takes time in proportion to
        # how far on it was: a pattern may have thousands of them.
        stretch = _STRETCH_MIN
        while start <= last:
            found = self._find_at_once(text, start, min(end, start + stretch + self.length - 1))
            if found >= 0:
                return found
            start += stretch
            stretch *= 2
        return -1

    def _find_at_once(self, text: str, start: int, end: int) -> int:
        """Do as `find`, in a time that does not depend on how often the segment nearly fits."""
        last = end - self.length
        # All places at once, one bit each: every character of the segment strikes out those
        # where it does not fit, 64 places at a step. Trying place after place would take time
        # in proportion to the product of both lengths.
        places = (1 << (last - start + 1)) - 1
        codes = np.frombuffer(text[start:end].encode("utf-32-le", "surrogatepass"), dtype="<u4")
        occurrences: dict[str, int] = {}
        for offset, run in self.runs:
            for index, character in enumerate(run, start=offset):
                if character not in occurrences:
                    bits = np.packbits(codes == ord(character), bitorder="little")
                    occurrences[character] = int.from_bytes(bits.tobytes(), "little")
                places &= occurrences[character] >> index
        return start + (places & -places).bit_length() - 1 if places else -1


@dataclass(frozen=True, slots=True)
class LikePattern:
    r"""A pattern of `LIKE`: `%` for any text, `_` for any character, `\` before either.

    The segments are the stretches between `%`; there is one more than there are `%`.
    """

    segments: tuple[_Segment, ...]

    @staticmethod
    def parse(pattern: str) -> LikePattern:
        """Return the pattern; every text is one."""
        segments: list[_Segment] = []
        runs: list[tuple[int, str]] = []
        run: list[str] = []
        length = 0
        position = 0

        def end_run() -> None:
            if run:
                runs.append((length - len(run), "".join(run)))
                run.clear()

        while position < len(pattern):
            character = pattern[position]
            position += 1
            if character == "%":
                end_run()
                segments.append(_Segment(length, tuple(runs)))
                runs.clear()
                length = 0
                continue
            if character == "_":
                end_run()
            else:
                if character == "\\" and pattern[position : position + 1] in ("%", "_"):
                    character = pattern[position]
                    position += 1
                run.append(character)
            length += 1
        end_run()
        segments.append(_Segment(length, tuple(runs)))
        return LikePattern(tuple(segments))

    @property
    def exact(self) -> str | None:
        """The one text that matches, or None when others may."""
        return self.segments[0].text if len(self.segments) == 1 else None

    @property
    def prefix(self) -> str:
        """What every match starts with; empty when that is nothing in particular."""
        first = self.segments[0].runs
        return first[0][1] if first and first[0][0] == 0 else ""

    @property
    def suffix(self) -> str:
        """What every match ends with; empty when that is nothing in particular."""
        last = self.segments[-1]
        if not last.runs:
            return ""
        offset, run = last.runs[-1]
        return run if offset + len(run) == last.length else ""

    @property
    def is_prefix(self) -> bool:
        """Every text that starts with `prefix` matches, and no other: `abc%`."""
        first = self.segments[0].text
        return first is not None and self._open_after_first and not self.segments[-1].length

    @property
    def is_suffix(self) -> bool:
        """Every text that ends with `suffix` matches, and no other: `%abc`."""
        last = self.segments[-1].text
        return (
            last is not None
            and len(self.segments) > 1
            and not any(segment.length for segment in self.segments[:-1])
        )

    @property
    def _open_after_first(self) -> bool:
        return len(self.segments) > 1 and not any(segment.length for segment in self.segments[1:-1])

    @property
    def passes(self) -> int:
        """How often matching may go through all of a text: not at all for `a%`, `%a`, `a%a`.

        What is searched for in one go counts once. A segment with `_` is looked for at all places
        at once, which takes a step for each of its characters.
        """
        inner = [segment for segment in self.segments[1:-1] if segment.length]
        steps = sum(segment.length for segment in inner if segment.text is None)
        return 1 + steps // _STEPS_PER_PASS if inner else 0

    def matches(self, text: str) -> bool:
        """Tell whether all of `text` matches."""
        first, last = self.segments[0], self.segments[-1]
        if len(self.segments) == 1:
            return len(text) == first.length and first.at(text, 0)
        start, end = first.length, len(text) - last.length
        if start > end or not first.at(text, 0) or not last.at(text, end):
            return False
        for segment in self.segments[1:-1]:
            found = segment.find(text, start, end)
            if found < 0:
                return False
            start = found + segment.length
        return True

    def matcher(self) -> Callable[[str], bool]:
        """Return the quickest function that tells whether a text matches."""
        exact = self.exact
        if exact is not None:
            return exact.__eq__
        if self.is_prefix:
            prefix = self.prefix
            return lambda text: text.startswith(prefix)
        if self.is_suffix:
            suffix = self.suffix
            return lambda text: text.endswith(suffix)
        return self.matches
