"""Every setting of a broker process and of a gateway, generated from where it is defined.

`python -m tests.settings_reference docs/live.md` rewrites what stands in the document between
`<!-- generated: settings -->` and `<!-- end -->`.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any

from distributary.broker.settings import Settings, setting_groups
from distributary.network.config import TABLES
from distributary.network.gateway.config import GatewayTable
from distributary.network.gateway.limits import LimitsTable

_MARKED = re.compile(r"(<!-- generated: settings -->\n).*?(<!-- end -->)", re.DOTALL)


def reference() -> str:
    """Return the tables of all settings, a section each."""
    tables: dict[str, Any] = dict(TABLES)
    tables |= {f"settings.{name}": type(one) for name, one in setting_groups(Settings()).items()}
    tables |= {"gateway": GatewayTable, "limits": LimitsTable}
    return "\n".join(_section(name, cls) for name, cls in tables.items())


def rewritten(text: str) -> str:
    """Return a document with the tables as they are now."""
    return _MARKED.sub(lambda found: f"{found[1]}\n{reference()}\n{found[2]}", text)


def _section(name: str, cls: Any) -> str:
    texts = _attributes(cls)
    lines = [f"### `[{name}]`", "", "| name | unless given | what it is |", "|---|---|---|"]
    for one in dataclasses.fields(cls):
        assert one.name in texts, f"{cls.__name__}.{one.name} has no description"
        lines.append(f"| `{one.name}` | {_default(one)} | {texts[one.name]} |")
    return "\n".join([*lines, ""])


def _default(one: dataclasses.Field[Any]) -> str:
    if one.default is dataclasses.MISSING:
        return "must be given"
    if one.default is None:
        return ""
    value = list(one.default) if isinstance(one.default, tuple) else one.default
    return f"`{json.dumps(value)}`"


def _attributes(cls: Any) -> dict[str, str]:
    """Return what a docstring says of each attribute; none may share a sentence with others."""
    text = inspect.cleandoc(cls.__doc__).partition("Attributes\n----------\n")[2]
    found = re.findall(r"^(\w+)\n((?:    .*\n?|\n)+)", text + "\n", re.M)
    return {name: " ".join(words.split()) for name, words in found}


if __name__ == "__main__":
    document = Path(sys.argv[1])
    document.write_text(rewritten(document.read_text("utf-8")), "utf-8")
