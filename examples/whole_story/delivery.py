"""The second chapter: an overlay of real processes delivers, and one of them is killed on the way.

Brokers, users and subscriptions are those of the history, and users are where the wiring put them.
A real map is published for devices of many kinds, and as soon as it is planned, a broker that has
much to do with it is killed. Then some publications of the history are published again, with real
content, and who gets them, in which format, is compared with what Spark had worked out.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from examples.whole_story.outcome import Kill, Overlay
from examples.whole_story.prices import Prices
from examples.whole_story.running import Running, happens, running

from distributary.broker.client import Delivery
from distributary.errors import DistributaryError
from distributary.media.samples import map_pdf, notice_text, photo_jpeg
from distributary.network.client import Client, ClientGate, Numbered
from distributary.network.transfers import TransferFailed
from distributary.network.views import look, look_at_plan
from distributary.pipeline.store import Store

__all__ = ["SHOWN", "deliver"]

_MAP_ID = "flood-map"
_MAP_TYPE, _MAP_SOURCE = "map.flood", "/survey"
_PDF = "application/pdf"
_USERS = 120
_REPLAYED = 12
_DEVICES_EACH = 3
_PRICES_S = 45.0
_LOOK_S = 0.02
_ANSWER_S = 0.5

# The story compares costs, so plans are chosen by their cost alone. Trees begin narrow, with two
# children each, and adapt within seconds instead of minutes.
_SETTINGS = """\
[settings.content]
delay_weight = 0.0

[settings.streams]
fanout = 2

[settings.adaptation]
window_s = 4.0
round_s = 8.0
hold_s = 4.0
"""

# The three devices that the report shows, and what they can use.
SHOWN: dict[str, tuple[str, dict[str, Any]]] = {
    "console": (
        "a console in the control room, 1,920 pixels wide",
        {"accept": ["image/jpeg", "application/pdf;q=0.1"], "screen": "1920x1080"},
    ),
    "pager": ("a pager that shows text", {"accept": ["text/plain;charset=utf-8"]}),
    "radio": ("a radio in a boat, which can only speak", {"accept": ["audio/mpeg", "audio/wav"]}),
}
_DEVICES: tuple[dict[str, Any], ...] = (
    {"accept": ["image/webp"], "screen": "390x844"},
    {"accept": ["image/jpeg"], "screen": "390x844"},
    {"accept": ["image/png;q=0.9", "image/webp"], "screen": "2560x1440"},
    {"accept": ["text/plain;charset=us-ascii"]},
    {"accept": ["audio/wav"]},
    {"accept": [_PDF]},
)
# What is published again has real content, in the format that it had.
_CONTENT: Mapping[str, Callable[[int], bytes]] = {
    _PDF: lambda number: map_pdf(pages=2, seed=number),
    "image/jpeg;width=2560": lambda number: photo_jpeg(seed=number),
    "text/plain;charset=utf-8": lambda number: notice_text(number).encode(),
}

_Key = tuple[str, str, str]
"""A subscription, and the source and the id of what it gets."""


def deliver(data: Path, pdf: bytes, *, seed: int, say: Callable[[str], None]) -> Overlay:
    """Have an overlay of real processes deliver.

    Parameters
    ----------
    data
        The tables of the history; the state of the overlay is beside them.
    pdf
        The map.
    seed
        Of every random choice.
    say
        Told what is being done.
    """
    table = Store(str(data)).read("overlay").sort_by("broker")
    names = dict(zip(table["identifier"].to_pylist(), table["broker"].to_pylist(), strict=True))
    say(f"starting a NATS server and {len(names)} brokers")
    with running(data.with_name("state"), list(names), settings=_SETTINGS) as overlay:
        story = _Story(overlay, data, names, random.Random(seed), say)
        asyncio.run(story.tell(pdf, seed))
    return story.told


class _Story:
    """What is published and received while the overlay runs."""

    def __init__(
        self,
        overlay: Running,
        data: Path,
        names: dict[str, str],
        rng: random.Random,
        say: Callable[[str], None],
    ) -> None:
        self.told = Overlay(names)
        self._overlay = overlay
        self._data = data
        self._rng = rng
        self._say = say
        self._clients: dict[str, Client] = {}
        self._wishes: dict[str, tuple[str, dict[str, Any]]] = {}
        self._got: Counter[_Key] = Counter()
        self._came: dict[_Key, tuple[Numbered, float]] = {}

    async def tell(self, pdf: bytes, seed: int) -> None:
        """Subscribe, publish, kill, and see to it that all that is owed arrives."""
        identity_of = {name: identity for identity, name in self.told.names.items()}
        wiring = Store(str(self._data)).read("wiring").to_pylist()
        home_of = {row["user"]: identity_of[row["broker"]] for row in wiring}
        async with self._overlay.gate() as gate:
            self._say("live: registering subscriptions")
            prices = Prices(gate, self._overlay.brokers, seed=seed)
            await asyncio.gather(self._subscribe(gate, home_of), prices.begin())
            ending = asyncio.Event()
            following = asyncio.ensure_future(prices.change_until(ending))
            at_least = asyncio.ensure_future(asyncio.sleep(_PRICES_S))
            published = await self._publish_map(gate, pdf)
            predicted = await self._replay(gate, home_of)
            owed = {*predicted, *((f"maps-{name}", *_MAP) for name in self.told.map.homes)}
            self._say("live: waiting for everything that is owed")
            came = await happens(lambda: owed <= self._got.keys(), self._got.total)
            self._check(predicted, owed)
            if not came:
                raise DistributaryError(
                    f"{self.told.made} of {self.told.owed} deliveries were made, and then no more "
                    f"came; hint: see {self._overlay.state / 'logs'}"
                )
            await self._look_at_map(gate, published)
            self.told.waiting = sum(await asyncio.gather(*map(self._waiting, self._wishes)))
            self._say("live: prices, while their trees adapt")
            await at_least
            ending.set()
            await following
            self.told.prices = prices.followed

    async def _subscribe(self, gate: ClientGate, home_of: Mapping[str, str]) -> None:
        """Have users of the history subscribe as they did there, and devices to maps."""
        users = {*sorted(home_of)[:_USERS]}
        wishes = []
        for row in Store(str(self._data)).read("subscriptions").to_pylist():
            if row["tolerance"] is None and row["user"] in users:
                wish = {"id": row["subscription_id"], "filters": json.loads(row["filters"])}
                if row["profile"] is not None:
                    wish["profile"] = json.loads(row["profile"])
                wishes.append(self._wish(gate, row["user"], home_of[row["user"]], wish))
        profiles = {name: profile for name, (_, profile) in SHOWN.items()}
        homes = [*self._overlay.brokers] * _DEVICES_EACH
        for number in range(len(homes) - len(profiles)):
            profiles[f"device-{number:02d}"] = _DEVICES[number % len(_DEVICES)]
        self._rng.shuffle(homes)
        for home, (name, profile) in zip(homes, profiles.items(), strict=True):
            self.told.map.homes[name] = home
            filters = [{"exact": {"source": _MAP_SOURCE, "type": _MAP_TYPE}}]
            wish = {"id": f"maps-{name}", "filters": filters, "profile": profile}
            wishes.append(self._wish(gate, name, home, wish))
        await asyncio.gather(*wishes)

    async def _wish(self, gate: ClientGate, name: str, home: str, wish: dict[str, Any]) -> None:
        if name not in self._clients:
            self._clients[name] = gate.client(name, home, lambda message: self._take(name, message))
        self._wishes[wish["id"]] = name, wish.get("profile", {})
        await self._clients[name].subscribe(wish)

    def _take(self, name: str, message: Numbered) -> None:
        if isinstance(message, Delivery):
            event = json.loads(message.event)
            key = message.subscription, event["source"], event["id"]
        else:
            key = message.subscription, message.source, message.id
        self._got[key] += 1
        self._came[key] = message, asyncio.get_running_loop().time()
        self._clients[name].acknowledge(message.subscription, message.number)

    async def _publish_map(self, gate: ClientGate, pdf: bytes) -> float:
        """Publish the map, kill a broker that is about to convert it; return when that began."""
        event = {
            "specversion": "1.0",
            "id": _MAP_ID,
            "source": _MAP_SOURCE,
            "type": _MAP_TYPE,
            "time": "2026-01-05T12:00:00Z",
            "datacontenttype": _PDF,
        }
        publisher = gate.client("survey", self._overlay.brokers[0])
        self._say("live: publishing the map")
        began = asyncio.get_running_loop().time()
        await publisher.publish(json.dumps(event), pdf, _PDF)
        plan = await self._plan(gate)
        while plan is None:
            await asyncio.sleep(_LOOK_S)
            plan = await self._plan(gate)
        self._note_plan(plan)
        # Not the one that has planned it, or nobody could look at the plan any more.
        works = {node["broker"]: len(node["converts"]) for node in plan["plan"]}
        homes = Counter(self.told.map.homes.values())
        others = [broker for broker in self._overlay.brokers if broker != plan["root"]]
        victim = max(others, key=lambda one: (works.get(one, 0), homes[one], one))
        away_s = await self._kill(gate, victim)
        self.told.kill = Kill(victim, homes[victim], away_s)
        return began

    async def _plan(self, gate: ClientGate) -> dict[str, Any] | None:
        return await look_at_plan(
            gate.connection,
            gate.subjects,
            gate.name,
            self._overlay.brokers,
            tenant="",
            source=_MAP_SOURCE,
            id=_MAP_ID,
        )

    def _note_plan(self, plan: Mapping[str, Any]) -> None:
        story = self.told.map
        for node in plan["plan"]:
            if node["parent"] is not None:
                story.links.append((node["parent"], node["broker"], tuple(node["receives"])))
            story.conversions += [(node["broker"], *pair) for pair in node["converts"]]
        cost = {name: one["transmission"] + one["conversion"] for name, one in _costs(plan)}
        story.cost = cost.pop("planned")
        story.simple = {_WAYS[name]: amount for name, amount in cost.items()}

    async def _kill(self, gate: ClientGate, broker: str) -> float:
        """Kill a broker; return after how many seconds it answers again."""
        pid = self._overlay.processes[broker]
        loop = asyncio.get_running_loop()
        self._say(f"live: killing {self.told.names[broker]}")
        os.kill(pid, signal.SIGKILL)
        began = loop.time()
        subject = gate.subjects.to_host(broker, gate.name)
        while True:
            # What was asked just before it died is never answered.
            with suppress(TransferFailed, TimeoutError):
                async with asyncio.timeout(_ANSWER_S):
                    (row,) = await look(gate.connection, subject, "broker")
                if row["pid"] != pid:
                    return loop.time() - began
            await asyncio.sleep(_LOOK_S)

    async def _replay(self, gate: ClientGate, home_of: Mapping[str, str]) -> dict[_Key, str | None]:
        """Publish some of the history again; return what Spark says comes of it."""
        order = [("time", "ascending"), ("event_id", "ascending")]
        rows = Store(str(self._data)).read("publications").sort_by(order).to_pylist()
        chosen = [
            row
            for row in rows
            if row["media_type"] in _CONTENT and not row["numbers"] and row["publisher"] in home_of
        ][:_REPLAYED]
        self._say(f"live: publishing {len(chosen)} events of the history again")
        publishers: dict[str, Client] = {}
        waiting = []
        for number, row in enumerate(chosen, start=1):
            publisher = publishers.get(row["source"])
            if publisher is None:
                name, home = f"from{row['source']}", home_of[row["publisher"]]
                publisher = publishers[row["source"]] = gate.client(name, home)
            attributes = {k: _typed(v["type"], v["text"]) for k, v in row["attributes"]}
            content = _CONTENT[row["media_type"]](number)
            waiting.append(publisher.publish(json.dumps(attributes), content, row["media_type"]))
        await asyncio.gather(*waiting)
        self.told.replayed = len(chosen)
        identities = {(row["source"], row["event_id"]) for row in chosen}
        return {
            (row["subscription_id"], row["source"], row["event_id"]): row["media_type"]
            for row in Store(str(self._data)).read("deliveries").to_pylist()
            if (row["source"], row["event_id"]) in identities
            and row["subscription_id"] in self._wishes
        }

    def _check(self, predicted: Mapping[_Key, str | None], owed: set[_Key]) -> None:
        """Compare what came with what was owed."""
        came = {key: _format_of(message) for key, (message, _) in self._came.items()}
        maps = {key for key in came if key[1:] == _MAP}
        told = self.told
        told.owed = len(owed)
        told.made = sum(
            self._got[key] == 1 and (key not in maps or self._accepts(key[0], came[key]))
            for key in owed
        )
        told.duplicates = self._got.total() - len(self._got)
        told.predicted = len(predicted)
        told.agreed = sum(came.get(key, "nothing") == kind for key, kind in predicted.items())
        told.others = len(came.keys() - owed)
        for key in maps:
            name, kind = self._wishes[key[0]][0], came[key]
            if kind is not None:
                told.map.formats[name] = kind

    def _accepts(self, subscription: str, media_type: str | None) -> bool:
        accepted = [kind.partition(";q=")[0] for kind in self._wishes[subscription][1]["accept"]]
        return media_type is not None and any(media_type.startswith(kind) for kind in accepted)

    async def _look_at_map(self, gate: ClientGate, published: float) -> None:
        """Fetch what the devices received that are shown."""
        for name in SHOWN:
            message, at = self._came[f"maps-{name}", *_MAP]
            assert isinstance(message, Delivery)
            assert message.blob is not None
            content = b"".join([part async for part in self._clients[name].content(message.blob)])
            self.told.map.received[name] = message.blob.media_type, content, at - published

    async def _waiting(self, subscription: str) -> int:
        """Return how much a subscription has not got that its home has for it."""
        status = await self._clients[self._wishes[subscription][0]].status(subscription)
        got = sum(count for key, count in self._got.items() if key[0] == subscription)
        return status.last - got if status is not None else 1


_MAP = (_MAP_SOURCE, _MAP_ID)
_WAYS = {
    "all-in-root": "all at the first broker",
    "all-in-leaves": "each where it is wanted",
    "single-format": "one format on each link",
}


def _costs(plan: Mapping[str, Any]) -> Sequence[tuple[str, Mapping[str, float]]]:
    return [("planned", plan["cost"]), *plan["baselines"].items()]


def _format_of(message: Numbered) -> str | None:
    """Return the format of what came; None if it could be made in none."""
    if not isinstance(message, Delivery):
        return None
    if message.blob is not None:
        return message.blob.media_type
    kind = json.loads(message.event).get("datacontenttype")
    return None if kind is None else str(kind)


def _typed(kind: str, text: str) -> str | int | bool:
    """Return an attribute as it was before it came into a table."""
    if kind == "Boolean":
        return text == "true"
    return int(text) if kind == "Integer" else text
