"""The reference is what the docstrings say, has every exported name, and every name has words."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import pytest
from tests.docs.api_reference import FOLDER, PACKAGES, page_name, pages
from tests.docs.test_documents import ROOT, anchors, broken_links

import distributary

MADE = pages()


def test_the_reference_is_up_to_date() -> None:
    """`make api` writes it."""
    there = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}
    assert there == MADE


@pytest.mark.parametrize("package", PACKAGES)
def test_every_exported_name_has_a_heading_and_words(package: str) -> None:
    page = MADE[page_name(package)]
    headings = [line for line in page.splitlines() if line.startswith("## ")]
    exported = import_module(f"distributary.{package}".rstrip(".")).__all__
    assert [heading.split()[-1] for heading in headings] == exported
    assert len(anchors(page)) == sum(line.startswith("#") for line in page.splitlines())
    told = page.split("\n## ")[1:]
    assert [part.splitlines()[0] for part in told if len(part.splitlines()) < 3] == []


@pytest.mark.parametrize("name", MADE)
def test_its_links_lead_somewhere(name: str) -> None:
    assert broken_links((FOLDER / name).relative_to(ROOT).as_posix(), MADE[name]) == []


def test_every_package_that_exports_names_has_a_page() -> None:
    """Those that are run and not imported export nothing."""
    exporting = {
        found.name
        for found in pkgutil.iter_modules(distributary.__path__)
        if found.ispkg and getattr(import_module(f"distributary.{found.name}"), "__all__", [])
    }
    assert exporting - {"cli", "console"} == {
        package for package in PACKAGES if package and "." not in package
    } - {"methods", "frames", "errors"}


def test_names_lead_to_where_they_are_described() -> None:
    page = MADE["placement.md"]
    assert "[`Placement`](#class-placement)" in page
    assert "### Placement.at" in page
    assert "- `method`: " in page
    assert "(errors.md#exception-toolarge)" in page
