"""The sentences of the notices: openings, advice and endings that fit each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

__all__ = ["TITLES", "Kind", "describe"]

Kind = Literal[
    "bridge",
    "flooded",
    "evacuation",
    "reception",
    "hospital",
    "landslip",
    "flooded_lane",
    "railway",
    "power",
    "water",
    "landing",
    "sandbags",
    "trees",
]

TITLES: dict[Kind, str] = {
    "bridge": "Bridge closed",
    "flooded": "Road under water",
    "evacuation": "Leave this area",
    "reception": "Reception centre",
    "hospital": "Medical post",
    "landslip": "Landslip",
    "flooded_lane": "Road flooded",
    "railway": "No trains",
    "power": "Power line down",
    "water": "Drinking water",
    "landing": "Helicopter landing",
    "sandbags": "Sandbags",
    "trees": "Trees on the road",
}

_PARTS: dict[Kind, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "bridge": (
        (
            "{where} is closed to all traffic since {time}, including people on foot.",
            "{where} was closed at {time} after the {river} reached its deck.",
        ),
        (
            "Driftwood is pressing against the second pier, and divers cannot inspect it before "
            "the water falls.",
            "An inspection found a crack above the north pier that widened during the night.",
        ),
        (
            "Cross the river at {way_round} instead, and allow {minutes} minutes more.",
            "Use {way_round}; heavy lorries are sent back to the {trunk}.",
        ),
    ),
    "flooded": (
        (
            "{where} stands {depth} cm under water over a length of {metres} metres.",
            "Both lanes of {where} have been flooded since {time}, over {metres} metres.",
        ),
        (
            "Two cars were swept off the carriageway; nobody was hurt.",
            "The current across the road is stronger than it looks, and the verge has gone.",
        ),
        (
            "Do not drive into the water. Turn back at the barriers and follow the signs.",
            "Traffic from the west is turned round at the lay-by; there is no way through.",
        ),
    ),
    "evacuation": (
        (
            "Everyone in {where} must leave before {later}.",
            "Residents of {where} are asked to leave their homes by {later}.",
        ),
        (
            "Switch off gas and electricity, take medicines and papers, and lock the door.",
            "Bring warm clothes, medicines and papers, and tell a neighbour that you are going.",
        ),
        (
            "Walk uphill along Bridge Street; buses wait at the square until the last person has "
            "left.",
            "Call {phone} if somebody in the house cannot walk; a crew will come for them.",
        ),
    ),
    "reception": (
        (
            "{where} is open day and night for everyone who cannot stay at home.",
            "A reception centre opened in {where} at {time}, with beds for {beds} people.",
        ),
        (
            "There are hot meals, showers, a nurse and a room for families with small children.",
            "Register at the main door so that relatives can find you. Pets are welcome on a lead.",
        ),
        (
            "The car park is kept free for ambulances; please come on foot or by bus.",
            "Interpreters are there until {later}, and a helpline answers on {phone}.",
        ),
    ),
    "hospital": (
        (
            "The emergency department of {where} is open; planned treatment is postponed.",
            "{where} runs on its own generator since {time} and admits emergencies alone.",
        ),
        (
            "Minor injuries are treated in the tent beside the entrance.",
            "Dialysis patients are brought here by boat; they should call {phone} first.",
        ),
        (
            "Approach from the north. The lower drive is under water.",
            "Visitors are asked to stay away until {later}.",
        ),
    ),
    "landslip": (
        (
            "About {metres} cubic metres of earth have slid onto {where}.",
            "A slope above {where} gave way at {time} and blocks both lanes.",
        ),
        (
            "The ground is still moving, and a geologist is on the way.",
            "Cracks have opened farther up the hill, so more may follow.",
        ),
        (
            "Keep away from the whole slope, also on foot and with horses.",
            "{village} can be reached from the other side alone.",
        ),
    ),
    "flooded_lane": (
        (
            "{where} is impassable for cars: the water is {depth} cm deep and rising.",
            "A culvert under {where} has collapsed, and the road is flooded.",
        ),
        (
            "Tractors and fire engines still get through at walking pace.",
            "The fire service has a boat here and takes people across on request.",
        ),
        (
            "The next measurement is due at {later}.",
            "Wait for the signal of the marshal, and do not follow other vehicles.",
        ),
    ),
    "railway": (
        (
            "No trains run between {town} and the coast since {time}.",
            "The line is closed after ballast was washed out over {metres} metres.",
        ),
        (
            "Buses replace trains every {minutes} minutes from the station forecourt.",
            "Passengers of the last train were taken to {school}.",
        ),
        (
            "The operator expects repairs to take until the end of the week.",
            "Do not walk along the track: inspection trains are moving without notice.",
        ),
    ),
    "power": (
        (
            "A 20 kV line has come down beside {where} and may be live.",
            "Two pylons near {where} are leaning, and the line between them is on the ground.",
        ),
        (
            "Stay at least 50 metres away, and keep animals off the fields around it.",
            "About {beds} homes in {village} and {far_village} are without power.",
        ),
        (
            "Engineers hope to restore the supply by {later}.",
            "Report flickering lights or a smell of burning on {phone}.",
        ),
    ),
    "water": (
        (
            "Tap water in {where} must be boiled before use until further notice.",
            "Drinking water is handed out in {where} from {time} until dusk.",
        ),
        (
            "Bring your own containers; each household gets {litres} litres a day.",
            "The tanker stands in front of the village hall, and volunteers carry water to those "
            "who cannot come.",
        ),
        (
            "Water from wells in the valley is not safe, boiled or not.",
            "The next laboratory result is expected at {later}.",
        ),
    ),
    "landing": (
        (
            "Helicopters land on {where} at short notice.",
            "{where} is reserved for rescue helicopters since {time}.",
        ),
        (
            "Keep the field and a strip of 100 metres around it free of people and animals.",
            "Drones must stay on the ground within three kilometres.",
        ),
        (
            "Secure tents, tarpaulins and bins in the gardens next to it.",
            "The field is lit from {later}; please do not park on the verge.",
        ),
    ),
    "sandbags": (
        (
            "Filled sandbags can be collected at {where}, {litres} for each house.",
            "{where} hands out sand and empty bags, first to houses below {street}.",
        ),
        (
            "Helpers with shovels are welcome; gloves and hot drinks are provided.",
            "Drive in from the north gate and leave by the south gate.",
        ),
        (
            "Lay bags like bricks, two deep, and put a sheet of plastic in front of them.",
            "The depot closes at {later} unless the water rises again.",
        ),
    ),
    "trees": (
        (
            "Several trees lie across {where} over {metres} metres.",
            "Wind has brought trees down on {where}, and more are leaning.",
        ),
        (
            "Forestry crews clear them by daylight only.",
            "One lane may be open from {later}; until then there is no way through.",
        ),
        (
            "Stay out of the woods on both sides of the road.",
            "If you are on foot, turn back at the forest gate.",
        ),
    ),
}


def describe(kind: Kind, where: str, words: Mapping[str, str], rng: np.random.Generator) -> str:
    """Return a paragraph about an incident.

    Parameters
    ----------
    kind
        What happened.
    where
        The road, bridge or building.
    words
        Other names that sentences may mention.
    rng
        Which sentences are taken, and the numbers in them.
    """
    hour = int(rng.integers(3, 8))
    facts = {
        "where": where,
        "time": f"{hour:02d}:{int(rng.integers(0, 12)) * 5:02d}",
        "later": f"{hour + int(rng.integers(6, 13)):02d}:00",
        "depth": str(int(rng.integers(4, 18)) * 5),
        "metres": str(int(rng.integers(4, 30)) * 20),
        "minutes": str(int(rng.integers(3, 7)) * 5),
        "beds": str(int(rng.integers(6, 22)) * 20),
        "litres": str(int(rng.integers(2, 6)) * 10),
        "phone": f"0555 {int(rng.integers(100, 1000))} {int(rng.integers(100, 1000))}",
    }
    sentences = [part[int(rng.integers(len(part)))] for part in _PARTS[kind]]
    text = " ".join(sentences).format_map({**words, **facts})
    return ". ".join(part[:1].upper() + part[1:] for part in text.split(". "))
