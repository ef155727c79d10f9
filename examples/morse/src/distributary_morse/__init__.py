"""Text as Morse code: an example of a converter that plugs in to distributary."""

from __future__ import annotations

from distributary_morse.text_to_morse import TextToMorse

__all__ = ["TextToMorse"]
