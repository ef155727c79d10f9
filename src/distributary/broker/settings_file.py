"""Settings from a table of a TOML file, group by group, with every complaint naming the field."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from distributary.broker.settings import Settings
from distributary.content.fields import described, no_such_name
from distributary.content.tables import read_table
from distributary.errors import BadInput
from distributary.placement import METHODS

__all__ = ["PERIOD_S_MIN", "check_method", "setting_groups", "settings_with"]

PERIOD_S_MIN = 0.001
"""Whatever happens again and again takes at least this long, or nothing else would happen."""

# Settings that are words, and times after which nothing happens again.
_WORDS = {"tree": ("estimated", "discovered"), "approach": ("tree-each", "one-tree")}
_MAY_BE_ZERO = ("clock_skew_s", "gossip_s", "probe_s", "redirect_s")


def setting_groups(settings: Settings) -> dict[str, Any]:
    """Return the groups of settings that a file may change, by name."""
    return {
        field.name: getattr(settings, field.name)
        for field in dataclasses.fields(Settings)
        if dataclasses.is_dataclass(getattr(settings, field.name)) and field.name != "space"
    }


def settings_with(base: Settings, given: object) -> Settings:
    """Return settings with what a table `[settings]` changes of them."""
    if not isinstance(given, Mapping):
        raise BadInput("settings", f"must be a table, not {described(given)}")
    groups = setting_groups(base)
    changed = {}
    for name, table in given.items():
        place = f"settings.{name}"
        if name not in groups:
            raise no_such_name(place, name, groups, "a group of settings")
        group = groups[name]
        read_table(type(group), table, place)
        _check_group(table, place)
        floats = {f.name for f in dataclasses.fields(group) if f.type in ("float", float)}
        values = {k: float(v) if k in floats else v for k, v in table.items()}
        changed[name] = dataclasses.replace(group, **values)
    return dataclasses.replace(base, **changed)


def check_method(method: str, place: str) -> None:
    """See that somebody knows how to place conversions by a method."""
    if method not in METHODS:
        raise no_such_name(place, method, METHODS, "a method of placement")


def _check_group(table: Mapping[str, Any], place: str) -> None:
    """See that times are not so short that a run would stand still, and that words are known."""
    for key, value in table.items():
        where = f"{place}.{key}"
        if key.endswith(("_s", "_s_max")) and key not in _MAY_BE_ZERO and value < PERIOD_S_MIN:
            raise BadInput(where, f"is {value:g}, and must be at least {PERIOD_S_MIN:g}")
        if key == "method":
            check_method(value, where)
        elif key in _WORDS and value not in _WORDS[key]:
            raise no_such_name(where, value, _WORDS[key], f"one of {', '.join(_WORDS[key])}")
