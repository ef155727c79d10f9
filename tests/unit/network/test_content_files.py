"""Content is in the store whole, durable and checked, or not at all."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from distributary.network.content import ContentStore, WrongContent

DATA = bytes(range(256)) * 5_000
DIGEST = hashlib.sha256(DATA).hexdigest()


def store_in(folder: Path) -> ContentStore:
    return ContentStore(folder / "content")


def test_what_was_put_is_there_again(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    assert store.size(DIGEST) is None
    assert store.put(DATA) == store.put(DATA) == DIGEST
    empty = store.put(b"")
    again = store_in(tmp_path)
    assert again.held() == sorted([(DIGEST, len(DATA)), (empty, 0)])
    assert again.read(DIGEST) == DATA
    assert again.read(DIGEST, 1000, 300) == DATA[1000:1300]
    assert again.read(DIGEST, len(DATA)) == b""
    again.free(DIGEST)
    again.free(DIGEST)
    assert again.held() == [(empty, 0)]
    with pytest.raises(FileNotFoundError):
        again.read(DIGEST)


def test_partial_content_is_resumed_where_it_was(tmp_path: Path) -> None:
    with store_in(tmp_path).partial(DIGEST, len(DATA), "a") as partial:
        partial.write(DATA[:300_000])
    store = store_in(tmp_path)
    assert store.held() == []
    with store.partial(DIGEST, len(DATA), "b") as other:
        assert other.there == 0
    with store.partial(DIGEST, len(DATA), "a") as partial:
        assert (partial.there, partial.resumed) == (300_000, 300_000)
        partial.write(DATA[300_000:])
        partial.finish()
    assert store.read(DIGEST) == DATA


@pytest.mark.parametrize("left", [DATA[:10] + b"x", DATA + b"x", b"\0" * len(DATA)])
def test_what_a_crash_has_spoilt_is_noticed_and_begun_anew(tmp_path: Path, left: bytes) -> None:
    store = store_in(tmp_path)
    with store.partial(DIGEST, len(left), "a") as partial:
        partial.write(left)
    with store.partial(DIGEST, len(DATA), "a") as partial:
        partial.write(DATA[partial.there :])
        if len(left) > len(DATA):
            partial.finish()
        else:
            with pytest.raises(WrongContent):
                partial.finish()
    with store.partial(DIGEST, len(DATA), "a") as partial:
        assert partial.there == 0
        partial.write(DATA)
        partial.finish()
    assert store.read(DIGEST) == DATA


def test_what_is_cut_short_is_no_content(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    with store.partial(DIGEST, len(DATA), "a") as partial:
        partial.write(DATA[:-1])
        with pytest.raises(WrongContent):
            partial.finish()
    assert store.held() == []


def test_only_old_partial_content_is_tidied_away(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.put(b"whole")
    with store.partial(DIGEST, len(DATA), "a") as partial:
        partial.write(DATA[:10])
    (path,) = tmp_path.glob("content/*.part")
    store.tidy(path.stat().st_mtime + 60)
    assert path.exists()
    store.tidy(path.stat().st_mtime + 2 * 86_400)
    assert not path.exists()
    assert len(store.held()) == 1
