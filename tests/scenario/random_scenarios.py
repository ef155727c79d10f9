"""Random scenarios: what the scenarios that come along have one by one, in any combination.

Only what the documents promise something for: nobody is away for as long as what is published is
kept, or for as long as it takes to be given up. `docs/simulator.md` says what else is not promised.

    python -m tests.scenario.random_scenarios 17 -o scenario.toml
    distributary simulate scenario.toml --seed 17
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["random_scenario", "scenario_text"]

_FORMATS = ["application/pdf", "image/jpeg;width=320", "text/plain;charset=utf-8"]
_BEGIN_S, _END_S = 10, 46
# Longer than whoever was away needs to be heard of again.
_HEARD_S = 8.0
# With less the registrations of those who are away are kept no longer than by those who are there.
_SHORT_RETENTION_S = 9.0
_LONG_RETENTION_S = 60.0
# The settings that say how much of something there may be, with very little and with little.
_LIMITS: dict[str, dict[str, tuple[int, ...]]] = {
    "subscriptions": {"window_items": (1, 2, 6), "window_bytes": (600, 4_000_000)},
    "content": {
        "items_max": (12, 60),
        "absent_items": (1, 8),
        "open_items": (1, 6),
        "early_items": (1, 4),
        "plan_size_max": (1,),
        "conversion_tries": (2,),
    },
    "publishing": {
        "items_max": (6, 40),
        "untaken_items": (5, 20),
        "early_max": (1, 4),
        "sessions_max": (1, 3),
    },
    "links": {"outbox_items": (2, 20)},
}
# After which messages somebody goes down, or is lost.
_MOMENTS = (
    *("Offer", "Portion", "Taken", "Served", "Settled", "Registered", "Subscribed"),
    *("Withdrawn", "Hop", "Replicate", "Replicated", "Redirect", "Arrived", "Connected"),
)


class _Draw:
    """One scenario in the making.

    Attributes
    ----------
    away_s
        For how long somebody may be out of reach in all, if all that goes wrong hits the same.
    is_short
        Whether publications are kept for a short time: then only two may be away for longer.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"{seed}/scenario")
        self.brokers = self.rng.randint(4, 12)
        self.away_s = 0.0
        self.is_short = self.chance(0.4)
        self.has_lost = False
        self.faults: list[dict[str, Any]] = []

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def document(self) -> dict[str, Any]:
        """Return the whole scenario."""
        overlay, content, workload = self.overlay(), self.content(), self.workload()
        migration = self.migration(workload) if self.chance(0.6) else None
        settings = self.limits()
        self.leave_out(settings, workload, moves=migration is not None)
        if workload.get("stuck"):
            # Nobody else has as much waiting, or as long.
            settings.setdefault("subscriptions", {})["queue_s"] = 90
        self.choose_faults(workload, content)
        if self.has_lost:
            # Who has got something at a home that is lost, and begins anew, may get it once more if
            # its publisher, without an answer, publishes it again.
            overlay.pop("access_loss", None)
        if self.is_short:
            # What comes that late, to a root that has no room or hears nothing, is after the end of
            # what a subscription was before a change.
            workload.pop("changing", None)
        if migration is not None:
            settings["migration"] = migration
        kept_s = _SHORT_RETENTION_S if self.is_short else _LONG_RETENTION_S
        settings.setdefault("content", {})["retention_s"] = kept_s + self.rng.randint(0, 4)
        settings["membership"] = {"period_s": 1}
        if self.has_lost or self.chance(0.3):
            settings["membership"]["lost_s"] = max(15.0, self.away_s + _HEARD_S)
        if self.chance(0.3):
            settings.setdefault("subscriptions", {})["registration_s"] = 8
        return {
            "size": "small",
            "overlay": overlay,
            "content": content,
            "workload": workload,
            "settings": settings,
            "fault": self.faults,
        }

    def overlay(self) -> dict[str, Any]:
        overlay: dict[str, Any] = {"brokers": self.brokers}
        for name, values, share in (
            ("loss", (0.02, 0.1), 0.4),
            ("access_loss", (0.05, 0.2), 0.3),
            ("access_delay_ms", (60,), 0.2),
            ("message_ms", (2,), 0.15),
            ("commit_ms", (5, 40), 0.2),
            ("bandwidth_mbps", (60,), 0.2),
            ("join", ("one-by-one",), 0.15),
        ):
            if self.chance(share):
                overlay[name] = self.rng.choice(values)
        return overlay

    def content(self) -> dict[str, Any]:
        if self.chance(0.6):
            return {}
        content: dict[str, Any] = {"graph": "map", "formats": _FORMATS, "megabytes": [0.1, 0.6]}
        if self.chance(0.5):
            content["share"] = 0.5
        if self.chance(0.3):
            content["tree"] = "discovered"
        return content

    def workload(self) -> dict[str, Any]:
        rng = self.rng
        tenants = 2 if self.chance(0.2) else 1
        workload: dict[str, Any] = {
            "begin_s": _BEGIN_S,
            "duration_s": _END_S,
            "settle_s": 150,
            "subscriptions": rng.randint(8, 30),
            "publishers": rng.randint(2, 3) * tenants,
            "publications": rng.randint(30, 140),
            "matching": rng.choice([0.3, 0.5, 1.0]),
            "types": rng.choice([1, 4, 8]),
            "originals": rng.choice([0.3, 1.0]),
            "reattach_s": rng.randint(3, 6),
            "tenants": tenants,
        }
        for name, values, share in (
            ("pipeline", (4, 8), 0.4),
            ("sources", (2,), 0.2),
            ("restarts", (2, 5), 0.2),
            ("twins", (0.3,), 0.15),
            ("late", (0.3, 0.8), 0.4),
            ("unsubscribing", (0.3,), 0.3),
            ("expiring", (0.3,), 0.25),
            ("stuck", (0.2,), 0.15),
            ("away", (0.4,), 0.25),
            ("changing", (0.6,), 0.35),
            ("advertise", (True,), 0.3),
        ):
            if self.chance(share):
                workload[name] = rng.choice(values)
        if tenants > 1 and self.chance(0.4):
            workload["foreign"] = 0.3
        if self.chance(0.2):
            workload |= {"storm_at_s": rng.randint(_BEGIN_S, _END_S - 4), "storm_publications": 30}
        return workload

    def migration(self, workload: dict[str, Any]) -> dict[str, Any]:
        workload["register_prices"] = True
        workload["publisher_prices"] = self.chance(0.5)
        return {
            "enabled": True,
            "period_s": self.rng.choice([3, 6]),
            "clients": 6,
            "threshold": 0.02,
            "redirect_s": self.rng.choice([1, 3]),
            "capacity": self.rng.choice([3, 8, 1_000_000]),
        }

    def limits(self) -> dict[str, Any]:
        """Return up to three limits that are small."""
        names = [(group, name) for group, own in _LIMITS.items() for name in own]
        found: dict[str, Any] = {}
        for group, name in self.rng.sample(names, self.rng.randint(0, 3)):
            found.setdefault(group, {})[name] = self.rng.choice(_LIMITS[group][name])
        return found

    @staticmethod
    def leave_out(settings: Mapping[str, Any], workload: dict[str, Any], *, moves: bool) -> None:
        """Take back what nothing is promised for beside something else."""
        if moves:
            # Whoever moves brings what is kept for it, whatever there is already, and what is
            # redirected is limited by the links.
            settings.get("publishing", {}).pop("items_max", None)
            settings.get("links", {}).pop("outbox_items", None)
        if workload.get("publisher_prices"):
            # A publisher's next home does not know what another one has published where it was.
            workload.pop("twins", None)
        if workload.get("changing"):
            # What a root has no room for comes later than what was before a change is withdrawn.
            settings.get("content", {}).pop("items_max", None)

    def choose_faults(self, workload: Mapping[str, Any], content: Mapping[str, Any]) -> None:
        kinds = ["crash", "crash", "torn", "torn", "partition", "partition", "lost", "leave"]
        kinds += ["drop", "duplicate", "reorder", "slow", "detached", "upgrade"]
        if not workload.get("changing"):
            # What is accepted just before a change, at a home whose clock is ahead, may be lost.
            kinds += ["skew", "slew"]
        if content:
            kinds += ["conversion", "fetch", "converters"]
            # What a client brings along and its next home cannot fetch is planned by nobody.
            kinds += [] if workload.get("register_prices") else ["content"]
        chosen = self.rng.sample(kinds, self.rng.randint(1, 4))
        if "upgrade" in chosen:
            # Nobody can tell a broker of the version before that it begins anew there.
            chosen = [kind for kind in chosen if kind not in ("lost", "leave")]
        for kind in chosen:
            at_s = round(self.rng.uniform(_BEGIN_S + 1, _END_S - 12), 1)
            self.faults.append({"kind": kind, "at_s": at_s} | self.details(kind, at_s))
        self.faults.sort(key=lambda fault: bool(fault.get("after")))

    def details(self, kind: str, at_s: float) -> dict[str, Any]:
        """Return what else there is to say of a fault."""
        rng, until_s = self.rng, round(at_s + self.rng.uniform(3.0, 12.0), 1)
        match kind:
            case "lost":
                self.has_lost = True
                if self.chance(0.5):
                    return {"after": rng.choice(_MOMENTS), "until_s": until_s}
                return {}
            case "leave" | "skew":
                return {}
            case "crash":
                length_s = rng.uniform(0.5, 14.0)
                found: dict[str, Any] = {"count": 1 if self.is_short else rng.randint(1, 3)}
                found["until_s"] = self.back_s(at_s, length_s)
                return found | ({"after": rng.choice(_MOMENTS)} if self.chance(0.4) else {})
            case "torn":
                return {"share": 0.5, "until_s": self.back_s(at_s, 1.5)}
            case "partition" | "detached" | "upgrade":
                length_s = rng.uniform(1.0, 3.0 if self.is_short else 15.0)
                found = {"until_s": self.back_s(at_s, length_s)}
                return found | ({"share": 0.5} if kind != "detached" else {})
            case "drop" | "duplicate" | "conversion" | "content" | "converters" | "fetch":
                return {"rate": 0.1 if kind == "content" else 0.3, "until_s": until_s}
            case "reorder":
                return {"rate": 0.3, "extra_ms": rng.choice([500, 3000]), "until_s": until_s}
            case "slew":
                return {"seconds": 1.0, "until_s": until_s}
            case _:
                return {"until_s": until_s}

    def back_s(self, at_s: float, length_s: float) -> float:
        """Return when somebody is back who is away for so long."""
        self.away_s += length_s
        return round(at_s + length_s, 1)


def random_scenario(seed: int) -> dict[str, Any]:
    """Return the document of a scenario that `scenario_from` reads; the same for the same seed."""
    return _Draw(seed).document()


def scenario_text(document: Mapping[str, Any]) -> str:
    """Return a scenario as TOML, in which values are written as they are in JSON."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in document.items() if key == "size"]
    for name, value in document.items():
        if name == "settings":
            tables = [(f"[settings.{group}]", table) for group, table in value.items()]
        else:
            tables = [("[[fault]]", one) for one in value] if name == "fault" else []
            tables += [(f"[{name}]", value)] if isinstance(value, dict) else []
        for head, table in tables:
            lines += ["", head, *(f"{key} = {json.dumps(one)}" for key, one in table.items())]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the scenario of a seed."""
    parser = argparse.ArgumentParser(description="write a random scenario")
    parser.add_argument("seed", type=int)
    parser.add_argument("-o", "--output", type=Path, default=Path("scenario.toml"))
    arguments = parser.parse_args()
    arguments.output.write_text(scenario_text(random_scenario(arguments.seed)), "utf-8")


if __name__ == "__main__":
    main()
