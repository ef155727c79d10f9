"""International Morse code: ITU-R M.1677-1."""

from __future__ import annotations

import unicodedata

__all__ = ["CODES", "code_words"]

CODES = {
    "A": ".-",
    "B": "-...",
    "C": "-.-.",
    "D": "-..",
    "E": ".",
    "F": "..-.",
    "G": "--.",
    "H": "....",
    "I": "..",
    "J": ".---",
    "K": "-.-",
    "L": ".-..",
    "M": "--",
    "N": "-.",
    "O": "---",
    "P": ".--.",
    "Q": "--.-",
    "R": ".-.",
    "S": "...",
    "T": "-",
    "U": "..-",
    "V": "...-",
    "W": ".--",
    "X": "-..-",
    "Y": "-.--",
    "Z": "--..",
    "0": "-----",
    "1": ".----",
    "2": "..---",
    "3": "...--",
    "4": "....-",
    "5": ".....",
    "6": "-....",
    "7": "--...",
    "8": "---..",
    "9": "----.",
    ".": ".-.-.-",
    ",": "--..--",
    ":": "---...",
    "?": "..--..",
    "'": ".----.",
    "-": "-....-",
    "/": "-..-.",
    "(": "-.--.",
    ")": "-.--.-",
    '"': ".-..-.",
    "=": "-...-",
    "+": ".-.-.",
    "@": ".--.-.",
}


def code_words(text: str) -> list[list[str]]:
    """Return the words of a text, each as the codes of its characters.

    Accents are dropped, as operators do; a character that has no code is left out.
    """
    plain = unicodedata.normalize("NFKD", text).upper()
    words = ([CODES[letter] for letter in word if letter in CODES] for word in plain.split())
    return [word for word in words if word]
