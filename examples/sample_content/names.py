"""Names for towns, rivers and streets that are on no real map."""

from __future__ import annotations

import numpy as np

__all__ = ["Names"]

_FIRST = (
    "Alder", "Ash", "Birch", "Black", "Bram", "Carr", "Copper", "Deer", "East", "Elm", "Fern",
    "Frost", "Glen", "Haw", "Heron", "Holm", "Kest", "Lang", "Lark", "March", "Middle", "North",
    "Oak", "Otter", "Pen", "Raven", "Red", "Rush", "Sedge", "Stan", "Thorn", "Wester", "Whit",
    "Wren",
)  # fmt: skip
_LAST = (
    "beck", "bridge", "by", "combe", "cote", "den", "field", "ford", "gate", "ham", "hurst",
    "ley", "mere", "ridge", "side", "stead", "stow", "thorpe", "ton", "wick", "worth",
)  # fmt: skip
_RIVERS = (
    "Alne",
    "Brent",
    "Calder",
    "Corve",
    "Erme",
    "Isk",
    "Lode",
    "Marl",
    "Nadder",
    "Tarn",
    "Wey",
)
_STREETS = (
    "Abbey", "Bakers", "Bell", "Bishop", "Castle", "Chapel", "Church", "Cooper", "Corn", "Dyers",
    "Fountain", "Garden", "George", "Granary", "Guild", "Harbour", "Hill", "King", "Lime",
    "Linden", "Market", "Mason", "Meadow", "Orchard", "Priory", "Quay", "Queen", "Rope", "Saddler",
    "School", "Silver", "Spring", "Station", "Tanner", "Temple", "Victoria", "Water", "Weaver",
    "Well", "William",
)  # fmt: skip
_KINDS = ("Street", "Street", "Street", "Road", "Lane", "Row", "Way")
_LANES = (
    "Mill",
    "Quarry",
    "Farm",
    "Beacon",
    "Hollow",
    "Drovers",
    "Warren",
    "Priors",
    "Long",
    "Chalk",
)


class Names:
    """Gives out names, each once.

    Parameters
    ----------
    rng
        Where choices come from.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._places = [first + last for first in _FIRST for last in _LAST]
        self._streets = list(_STREETS)
        self._lanes = list(_LANES)
        self.river = f"River {_RIVERS[rng.integers(len(_RIVERS))]}"

    def place(self) -> str:
        """Return the name of a town, a village or a farm."""
        return self._taken(self._places)

    def street(self) -> str:
        """Return the name of a street in town."""
        if not self._streets:
            return f"{self.place()} Street"
        return f"{self._taken(self._streets)} {_KINDS[self._rng.integers(len(_KINDS))]}"

    def lane(self) -> str:
        """Return the name of a road between villages."""
        return f"{self._taken(self._lanes)} Lane" if self._lanes else f"{self.place()} Lane"

    def _taken(self, names: list[str]) -> str:
        return names.pop(int(self._rng.integers(len(names))))
