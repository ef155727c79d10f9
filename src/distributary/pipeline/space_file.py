"""The content space of a data folder: kept beside the channels, for all who speak of cells."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from distributary.content.content_space import ContentSpace
from distributary.content.documents import parse_document
from distributary.errors import BadInput

if TYPE_CHECKING:
    from distributary.pipeline.store import Store

__all__ = ["kept_space", "read_space", "write_space"]

# Inside of the table's folder, so that the two are replaced together; the underscore hides
# it from everything that looks for Parquet files.
_FILE = "channels/_space.json"
_WISH = "channels/_wish.json"


def write_space(store: Store, space: ContentSpace, wish: Mapping[str, object]) -> None:
    """Write the space of the table `channels` beside it, with what was asked for."""
    store.folder.write_text(_WISH, json.dumps(dict(wish)) + "\n")
    store.folder.write_text(_FILE, json.dumps(space.document(), indent=1) + "\n")


def read_space(store: Store) -> ContentSpace:
    """Return the space that the cells in this folder are of, or raise `BadInput`."""
    kept = kept_space(store)
    if kept is None:
        raise BadInput(
            store.path(_FILE), "there is no such file", hint="distributary pipeline channels"
        )
    return kept[0]


def kept_space(store: Store) -> tuple[ContentSpace, Mapping[str, object]] | None:
    """Return the space of this folder and what was asked for; None before one was chosen."""
    text = store.folder.read_text(_FILE)
    if text is None:
        return None
    wish: dict[str, object] = json.loads(store.folder.read_text(_WISH) or "{}")
    try:
        return ContentSpace.parse(parse_document(text)), wish
    except BadInput as error:
        raise error.within(store.path(_FILE)) from None
