"""Write the files beside this one anew: `python -m examples.your_data`.

Nothing in them is anybody's: instruments, sensors, the shop and its customers do not exist. Prices
wander, temperatures follow the hours of a day, and orders are paid and sent as orders are.
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

SEED = 1
BEGIN = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
BROKERS = ("north", "south", "west")
USERS = ("ada", "ben", "cleo", "dora", "emil", "fay", "gus", "hana", "ivo", "jana", "kurt", "lena")
INSTRUMENTS = {"BARK": 24.0, "FERN": 61.5, "MOSS": 118.0, "REED": 7.2}
SENSORS = {"attic": 24.0, "cellar": 12.5, "garden": 9.0, "greenhouse": 21.0}
GOODS = {"kettle": 34.9, "lamp": 59.0, "rug": 129.0, "stool": 44.5, "teapot": 27.25}


def stamp(minutes: float) -> str:
    """Return a time of the day of all this, as files have it."""
    return (BEGIN + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")


def users() -> Iterator[str]:
    """Yield who there is, and the broker where each is at home."""
    yield "user,broker"
    for at, user in enumerate(USERS):
        yield f"{user},{BROKERS[at % len(BROKERS)]}"


def subscriptions() -> Iterator[str]:
    """Yield who wants what: prices within a tolerance, warm rooms, large orders."""
    random.seed(SEED)
    for at, user in enumerate(USERS):
        instrument = list(INSTRUMENTS)[at % len(INSTRUMENTS)]
        limit = round(INSTRUMENTS[instrument] * random.choice((0.002, 0.005, 0.02)), 3)
        yield _subscription(
            f"{user}-quotes",
            user,
            [{"exact": {"type": "quote", "subject": instrument}}],
            {"value": "/value", "divergence": "absolute", "amount": limit},
        )
        if at % 2:
            low = random.choice((10, 15, 20))
            filters = [{"prefix": {"type": "reading."}}, {"range": {"/celsius": {"min": low}}}]
            yield _subscription(f"{user}-readings", user, filters)
        if at % 3 == 0:
            yield _subscription(
                f"{user}-shop",
                user,
                [{"sql": "type = 'order.paid'"}, {"range": {"/total": {"min": 60}}}],
            )


def _subscription(name: str, user: str, filters: list[object], tolerance: object = None) -> str:
    row = {"subscription_id": name, "user": user, "filters": json.dumps(filters)}
    if tolerance is not None:
        row["tolerance"] = json.dumps(tolerance)
    return json.dumps(row)


def quotes() -> Iterator[str]:
    """Yield prices that wander, every twenty seconds for forty minutes."""
    random.seed(SEED)
    yield "object,time,value"
    values = dict(INSTRUMENTS)
    for step in range(120):
        for name in sorted(values):
            values[name] *= math.exp(random.gauss(0.0, 0.0015))
            yield f"{name},{stamp(step / 3)},{values[name]:.3f}"


def readings() -> Iterator[str]:
    """Yield a reading of each sensor every half hour of a day, warmest in the afternoon."""
    random.seed(SEED)
    for half_hour in range(48):
        # Eight o'clock is a third of the way from midnight; it is warmest at three.
        warmth = math.cos((half_hour / 2 + 8 - 15) / 24 * math.tau)
        for at, (room, mean) in enumerate(sorted(SENSORS.items())):
            swing = {"cellar": 0.3, "garden": 6.0, "greenhouse": 8.0}.get(room, 2.5)
            celsius = round(mean + swing * warmth + random.gauss(0.0, 0.3), 1)
            yield _event(
                f"r{half_hour * len(SENSORS) + at}",
                f"/house/{room}",
                "reading.temperature",
                stamp(30 * half_hour),
                {"celsius": celsius, "room": room},
            )


def shop() -> Iterator[str]:
    """Yield what happens in a shop: orders are placed, most are paid, and those are sent."""
    random.seed(SEED)
    events = []
    for order in range(60):
        minute = random.uniform(0.0, 540.0)
        goods = random.choices(sorted(GOODS), k=random.randint(1, 3))
        data = {
            "order": order,
            "items": goods,
            "total": round(sum(map(GOODS.__getitem__, goods)), 2),
        }
        events.append((minute, "order.placed", data))
        if random.random() < 0.8:
            events.append((minute + random.uniform(1.0, 30.0), "order.paid", data))
            events.append((minute + random.uniform(60.0, 300.0), "order.sent", data))
    for at, (minute, kind, data) in enumerate(sorted(events, key=lambda event: event[0])):
        yield _event(f"s{at}", "/shop", kind, stamp(minute), data)


def _event(name: str, source: str, kind: str, time: str, data: object) -> str:
    event = {"specversion": "1.0", "id": name, "source": source, "type": kind, "time": time}
    return json.dumps({**event, "datacontenttype": "application/json", "data": data})


FILES = {
    "users.csv": users,
    "subscriptions.jsonl": subscriptions,
    "quotes.csv": quotes,
    "readings.jsonl": readings,
    "shop.jsonl": shop,
}


def write(folder: Path) -> None:
    """Write every file into a folder."""
    for name, lines in FILES.items():
        (folder / name).write_text("\n".join(lines()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
