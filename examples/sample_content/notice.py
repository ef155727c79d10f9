"""The items of the map as plain text, for those who have no picture."""

from __future__ import annotations

from examples.sample_content.country import country, grid_reference

__all__ = ["notice_text"]


def notice_text(seed: int = 0) -> str:
    """Return the notice that goes with the map of this seed: paragraphs and numbered items.

    Not all of its characters are ASCII, and some are in no 8-bit character set.
    """
    land = country(seed)
    town = land.town.name
    paragraphs = [
        f"Flood notice for {town} \N{EM DASH} County Emergency Office",
        f"The {land.river_name} has left its bed along the whole valley and is expected to crest "
        f"in {town} this afternoon. It is 4\N{DEGREE SIGN}C, and more rain is forecast: "
        "20\N{EN DASH}30 mm before midnight. Stay away from the water, follow the closures, and "
        "keep telephone lines free for emergencies.",
    ]
    paragraphs += [
        f"{item.number}. {item.title}. {item.where[:1].upper()}{item.where[1:]}, "
        f"{grid_reference(*item.place)}. {item.text}"
        for item in land.incidents
    ]
    paragraphs += [
        "Sammelstelle für Besucher: die Schule. Bitte Türen schließen und Strom abschalten. "
        "Point d'accueil des visiteurs\N{NO-BREAK SPACE}: l'école, à côté du marché. "
        "Κέντρο υποδοχής: το σχολείο. Центр приёма: школа. 受付は学校です。",
        "Donations: \N{EURO SIGN}5 buys a hot meal. Questions: "
        "\N{LEFT DOUBLE QUOTATION MARK}Situation Desk\N{RIGHT DOUBLE QUOTATION MARK}, "
        "0555 100 100, day and night.",
    ]
    return "\n\n".join(paragraphs) + "\n"
