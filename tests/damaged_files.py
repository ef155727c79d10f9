"""Files that are not what they say, from a seed: the n-th is the same in every run."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from tests.bombs import BOMBS
from tests.tiny_media import ESSENCES, tiny

__all__ = ["TARGETS", "DamagedFile", "damaged_file"]

# Every fifth file is a bomb: fifty have ten of them, those that the specification names.
_BOMB_EVERY = 5
TARGETS = {
    "application/pdf": ("image/jpeg;width=320", "image/png;width=320", "text/plain;charset=utf-8"),
    "image/jpeg": ("image/png", "image/webp;width=100"),
    "image/png": ("image/jpeg", "image/webp;width=100"),
    "image/webp": ("image/png", "image/jpeg;width=100"),
    "image/gif": ("image/png", "image/jpeg;width=100"),
    "audio/wav": ("audio/mpeg", "audio/aac"),
    "audio/mpeg": ("audio/wav", "audio/aac"),
    "audio/aac": ("audio/wav", "audio/mpeg"),
    "audio/ogg": ("audio/wav", "audio/mpeg"),
    "video/mp4": ("video/3gpp;width=176;bitrate=80k", "image/jpeg;width=100", "audio/mpeg"),
    "video/x-msvideo": ("video/3gpp;width=176;bitrate=80k", "video/mp4"),
    "video/x-flv": ("video/3gpp;width=176;bitrate=80k", "image/png", "audio/ogg"),
    "video/3gpp": ("video/x-flv;width=176;bitrate=80k", "video/mp4"),
    "text/plain": ("text/plain;charset=utf-16", "audio/wav", "audio/wav;item=all;language=de"),
    "text/html": ("text/plain;charset=utf-8",),
    "application/json": ("text/plain;charset=utf-8",),
    "application/xml": ("text/plain;charset=utf-8",),
}


@dataclass(frozen=True)
class DamagedFile:
    """A file to be converted, and what was done to it.

    Attributes
    ----------
    seed, number
        Which one it is.
    damage
        What is wrong with it.
    source, target
        What it says it is, and what it shall become.
    content
        What is in it.
    """

    seed: int
    number: int
    damage: str
    source: str
    target: str
    content: bytes = field(repr=False)


def damaged_file(seed: int, number: int) -> DamagedFile:
    """Return the file of that number."""
    rng = np.random.default_rng([seed, number])
    if number % _BOMB_EVERY == _BOMB_EVERY - 1:
        essence, bomb = BOMBS[number // _BOMB_EVERY % len(BOMBS)]
        damage, content = bomb.__name__.replace("_", " "), bomb(rng)
    else:
        # Bombs left out, types and damages take turns, each type with each damage.
        turn = number - number // _BOMB_EVERY
        essence = ESSENCES[turn % len(ESSENCES)]
        damages = tuple(_DAMAGES)
        damage = damages[(turn % len(ESSENCES) + turn // len(ESSENCES)) % len(damages)]
        content = _DAMAGES[damage](tiny(essence), rng)
    source = "text/plain;charset=utf-8" if essence == "text/plain" else essence
    targets = TARGETS[essence]
    target = targets[int(rng.integers(len(targets)))]
    return DamagedFile(seed, number, damage, source, target, content)


def _truncated(content: bytes, rng: np.random.Generator) -> bytes:
    return content[: int(rng.integers(1, len(content)))]


def _beheaded(content: bytes, rng: np.random.Generator) -> bytes:
    return content[int(rng.integers(1, len(content))) :]


def _few_flips(content: bytes, rng: np.random.Generator) -> bytes:
    return _flipped(content, rng, int(rng.integers(1, 6)))


def _many_flips(content: bytes, rng: np.random.Generator) -> bytes:
    return _flipped(content, rng, int(rng.integers(len(content) // 50 + 1, len(content) + 2)))


def _flipped(content: bytes, rng: np.random.Generator, flips: int) -> bytes:
    damaged = bytearray(content)
    for place in rng.integers(0, len(damaged), flips):
        damaged[place] ^= 1 << int(rng.integers(8))
    return bytes(damaged)


def _empty(content: bytes, rng: np.random.Generator) -> bytes:
    return b""


def _mislabelled(content: bytes, rng: np.random.Generator) -> bytes:
    others = [tiny(essence) for essence in ESSENCES if tiny(essence) != content]
    return others[int(rng.integers(len(others)))]


def _zero_run(content: bytes, rng: np.random.Generator) -> bytes:
    begin, end = sorted(int(place) for place in rng.integers(0, len(content) + 1, 2))
    return content[:begin] + bytes(end - begin) + content[end:]


def _doubled(content: bytes, rng: np.random.Generator) -> bytes:
    begin = int(rng.integers(len(content)))
    return content[:begin] + content + content[begin:]


def _garbage_after_the_mark(content: bytes, rng: np.random.Generator) -> bytes:
    return content[: int(rng.integers(4, 40))] + rng.bytes(int(rng.integers(1, 20_000)))


def _cut_out(content: bytes, rng: np.random.Generator) -> bytes:
    begin, end = sorted(int(place) for place in rng.integers(0, len(content) + 1, 2))
    return content[:begin] + content[end:]


_DAMAGES = {
    "truncated": _truncated,
    "a few bits flipped": _few_flips,
    "many bits flipped": _many_flips,
    "mislabelled": _mislabelled,
    "a run of zeros": _zero_run,
    "doubled": _doubled,
    "garbage after the mark": _garbage_after_the_mark,
    "empty": _empty,
    "beheaded": _beheaded,
    "a part cut out": _cut_out,
}
