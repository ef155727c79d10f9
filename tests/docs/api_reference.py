"""The reference of the library, written from its docstrings into `docs/api`.

`python -m tests.docs.api_reference` writes it anew, and so does `make api`. A page has what
`__all__` of its package exports and nothing else.
"""

from __future__ import annotations

import ast
import enum
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["FOLDER", "PACKAGES", "pages"]

FOLDER = Path(__file__).parents[2] / "docs" / "api"
PACKAGES = (
    *("", "placement", "fidelity", "wiring", "filters", "content", "topology", "media"),
    *("simulator", "simulator.queueing", "pipeline", "client", "drawing"),
    *("methods", "frames", "errors"),
)
"""What has a page, after `distributary.`, in the order of the index."""

_WIDTH = 100
_VALUE_MAX = 300
_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
# Whose entries are names with descriptions below them; those of others are text.
_NAMED = {"Parameters", "Attributes", "Raises", "Returns", "Yields"}


@dataclass(frozen=True)
class Entry:
    """One exported name: what it is, and what it is called on its page."""

    package: str
    name: str
    value: Any

    @property
    def kind(self) -> str:
        """Return what the heading says it is: anchors of `Cost` and `cost` must differ."""
        if inspect.isclass(self.value):
            return "exception" if issubclass(self.value, BaseException) else "class"
        return "function" if inspect.isroutine(self.value) else "constant"

    @property
    def anchor(self) -> str:
        """Return where its heading is."""
        return f"{self.kind}-{self.name.lower()}"


def page_name(package: str) -> str:
    """Return the file of a package."""
    return f"{package.replace('.', '-') or 'distributary'}.md"


def pages() -> dict[str, str]:
    """Return every page by the name of its file."""
    modules = {name: import_module(f"distributary.{name}".rstrip(".")) for name in PACKAGES}
    entries = {
        package: [Entry(package, name, getattr(module, name)) for name in module.__all__]
        for package, module in modules.items()
    }
    made = {page_name(package): _page(package, modules[package], entries) for package in PACKAGES}
    made["README.md"] = _index(modules, entries)
    return made


def _index(modules: Mapping[str, ModuleType], entries: Mapping[str, list[Entry]]) -> str:
    lines = [
        "# Reference",
        "",
        "Everything that the packages export, from their docstrings. It is generated: `make api`",
        "writes it, and a test compares the two.",
        "",
        "| package | what it is | names |",
        "|---|---|---|",
    ]
    for package, module in modules.items():
        name = f"distributary.{package}".rstrip(".")
        told = _plain(_documented(module).partition("\n\n")[0])
        names = ", ".join(
            f"[`{entry.name}`]({page_name(package)}#{entry.anchor})" for entry in entries[package]
        )
        lines.append(f"| [`{name}`]({page_name(package)}) | {told} | {names} |")
    return "\n".join(lines) + "\n"


def _page(package: str, module: ModuleType, entries: Mapping[str, list[Entry]]) -> str:
    links = _Links(package, entries)
    name = f"distributary.{package}".rstrip(".")
    blocks = [f"# {name}", links.markdown(_documented(module))]
    for entry in entries[package]:
        blocks.append(f"## {entry.kind} {entry.name}")
        blocks += list(_described(entry, module, links))
    blocks.append("[All packages](README.md)")
    return "\n\n".join(block for block in blocks if block) + "\n"


def _described(entry: Entry, module: ModuleType, links: _Links) -> Iterator[str]:
    value = entry.value
    if entry.kind == "constant":
        shown = repr(dict(value)) if isinstance(value, Mapping) else repr(value)
        if len(shown) <= _VALUE_MAX and not _varies(shown):
            yield f"```python\n{entry.name} = {shown}\n```"
        yield links.markdown(_constant_docstring(entry.name, module))
        return
    if isinstance(value, enum.EnumMeta):
        yield "Members: " + ", ".join(f"`{member}`" for member in value.__members__) + "."
    else:
        yield _signature(entry.name, value)
    yield links.markdown(_documented(value))
    if entry.kind == "class":
        for name, member in _members(value):
            yield f"### {entry.name}.{name}"
            if isinstance(member, property | cached_property):
                told = member.fget if isinstance(member, property) else member.func
                yield links.markdown(_documented(told))
            else:
                yield _signature(f"{entry.name}.{name}", getattr(value, name))
                yield links.markdown(_documented(getattr(value, name)))


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties of a class, and of bases that are ours."""
    seen: set[str] = set()
    for base in kind.__mro__:
        if not base.__module__.startswith("distributary"):
            continue
        for name, member in vars(base).items():
            callable_ = inspect.isfunction(member) or isinstance(member, classmethod | staticmethod)
            shown = callable_ or isinstance(member, property | cached_property)
            if shown and not name.startswith("_") and name not in seen:
                seen.add(name)
                yield name, member


@dataclass(frozen=True)
class _Written:
    """Something that is shown in a signature as it was written."""

    text: str

    def __repr__(self) -> str:
        return self.text


def _signature(name: str, value: Any) -> str:
    """Return how something is called, on as many lines as it takes."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    parameters = []
    for parameter in signature.parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.default is not parameter.empty and _varies(repr(parameter.default)):
            parameter = parameter.replace(default=_Written("..."))
        annotation = parameter.annotation
        if isinstance(annotation, str):
            parameter = parameter.replace(annotation=_Written(annotation))
        parameters.append(parameter)
    returned = signature.return_annotation
    if isinstance(returned, str):
        returned = inspect.Signature.empty if inspect.isclass(value) else _Written(returned)
    short = str(signature.replace(parameters=parameters, return_annotation=returned))
    if len(name) + len(short) > _WIDTH:
        inside, _, after = short[1:].rpartition(")")
        short = "(\n    " + ",\n    ".join(_split(inside)) + f",\n){after}"
    return f"```python\n{name}{short}\n```"


def _split(inside: str) -> list[str]:
    """Return parameters apart, at commas that are not inside of brackets or texts."""
    parts, depth, quote, start = [], 0, "", 0
    for at, letter in enumerate(inside):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(inside[start:at].strip())
            start = at + 1
    return [*parts, inside[start:].strip()]


def _varies(shown: str) -> bool:
    """Say whether how a value is shown has an address in it, which differs from run to run."""
    return " at 0x" in shown


def _documented(value: Any) -> str:
    # Those that dataclasses make up are no docstrings.
    text = inspect.getdoc(value) or ""
    return "" if text.startswith(f"{getattr(value, '__name__', '')}(") else text


def _constant_docstring(name: str, module: ModuleType) -> str:
    """Return the text below the assignment of a constant, wherever it is made."""
    for home in [module, *_homes(module)]:
        source = inspect.getsource(home)
        body = ast.parse(source).body
        for statement, after in pairwise(body):
            targets = getattr(statement, "targets", [getattr(statement, "target", None)])
            named = any(isinstance(one, ast.Name) and one.id == name for one in targets)
            if named and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                return inspect.cleandoc(str(after.value.value))
    return ""


def _homes(module: ModuleType) -> list[ModuleType]:
    """Return the modules of a package that are loaded, by name."""
    inside = f"{module.__name__}."
    return [sys.modules[name] for name in sorted(sys.modules) if name.startswith(inside)]


def _plain(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


@dataclass(frozen=True)
class _Links:
    """Where names lead, seen from the page of a package: to it, and else to the one that has it."""

    package: str
    entries: Mapping[str, list[Entry]]

    @cached_property
    def _targets(self) -> dict[str, str]:
        found: dict[str, list[str]] = {}
        for package, entries in self.entries.items():
            for entry in entries:
                page = "" if package == self.package else page_name(package)
                found.setdefault(entry.name, []).append(f"{page}#{entry.anchor}")
        here = {
            name: target
            for name, targets in found.items()
            for target in targets
            if target.startswith("#")
        }
        return {name: targets[0] for name, targets in found.items() if len(targets) == 1} | here

    def markdown(self, text: str) -> str:
        """Return a docstring as Markdown: sections in bold, entries as lists, names as links."""
        parts = _SECTION.split(text)
        blocks = [self._text(parts[0])]
        for heading, body in zip(parts[1::2], parts[2::2], strict=True):
            blocks.append(f"**{heading}**")
            blocks.append(self._list(body) if heading in _NAMED else self._text(body))
        return "\n\n".join(block for block in blocks if block)

    def _text(self, text: str) -> str:
        """Return paragraphs; what is indented after a double colon is code."""
        paragraphs = []
        for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
            if paragraph.startswith("    "):
                paragraphs.append(f"```text\n{inspect.cleandoc(paragraph)}\n```")
            else:
                paragraphs.append(self._linked(paragraph.strip().replace("::", ":")))
        return "\n\n".join(paragraphs)

    def _list(self, body: str) -> str:
        items: list[str] = []
        for line in body.strip("\n").splitlines():
            if line and not line[0].isspace():
                names = ", ".join(f"`{name.strip()}`" for name in line.split(","))
                items.append(f"- {self._linked(names)}:")
            elif line.strip():
                items[-1] += f" {self._linked(line.strip())}"
        return "\n".join(item.removesuffix(":") for item in items)

    def _linked(self, text: str) -> str:
        def link(found: re.Match[str]) -> str:
            target = self._targets.get(found[1])
            return found[0] if target is None else f"[{found[0]}]({target})"

        return re.sub(r"(?<!`)`(\w+)`(?!`)", link, text)


def main() -> None:
    """Write all pages, and remove those of packages that are gone."""
    FOLDER.mkdir(exist_ok=True)
    made = pages()
    for old in FOLDER.glob("*.md"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
