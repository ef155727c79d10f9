"""Results are found again, damaged ones are not, and the disk is nobody's problem."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from tests.commands import untraced

from distributary.content.media_type import MediaType
from distributary.errors import BadInput
from distributary.media.cache import Cache, default_directory
from distributary.media.cache_files import CacheFiles
from distributary.media.cache_key import CacheKey
from distributary.media.failure import ConversionFailed, FailureKind
from distributary.media.limits import Limits
from distributary.media.result import ConversionResult

PDF = MediaType.parse("application/pdf")
JPEG = MediaType.parse("image/jpeg;width=640")
KEY = CacheKey.of(b"a map", PDF, JPEG, "pdf-image 1")
MEBIBYTE = 1 << 20


def converted(content: bytes = b"a picture", *, seconds: float = 0.25) -> ConversionResult:
    return ConversionResult(content, media_type=JPEG, seconds=seconds, cached=False)


def failed(kind: FailureKind = "damaged", limits: Limits | None = None) -> ConversionFailed:
    return ConversionFailed(
        PDF, JPEG, kind=kind, reason="there is no page", limits=limits or Limits()
    )


def key(number: int) -> CacheKey:
    return CacheKey.of(b"%d" % number, PDF, JPEG, "pdf-image 1")


def entry_paths(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file())


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "kept", bytes_max=MEBIBYTE)


def test_what_was_kept_is_found_again_and_says_so(cache: Cache, tmp_path: Path) -> None:
    assert cache.get(KEY) is None
    cache.put(KEY, converted())
    assert cache.get(KEY) == replace(converted(), cached=True)
    another = Cache(tmp_path / "kept", bytes_max=MEBIBYTE)
    assert another.get(KEY) == replace(converted(), cached=True)


@pytest.mark.parametrize(
    "other",
    [
        CacheKey.of(b"a man", PDF, JPEG, "pdf-image 1"),
        CacheKey.of(b"a map", JPEG, JPEG, "pdf-image 1"),
        CacheKey.of(b"a map", PDF, "image/jpeg;width=320", "pdf-image 1"),
        CacheKey.of(b"a map", PDF, JPEG, "pdf-image 2"),
    ],
)
def test_another_content_format_or_version_is_another_conversion(
    cache: Cache, other: CacheKey
) -> None:
    cache.put(KEY, converted())
    assert cache.get(other) is None


def test_the_order_and_spelling_of_a_format_make_no_other_conversion() -> None:
    one = CacheKey.of(b"", "audio/x-wav", "video/mp4;width=320;bitrate=200k", "v")
    two = CacheKey.of(b"", "audio/wav", "video/MP4; bitrate=200k; width=320", "v")
    assert one.digest == two.digest


def test_a_failure_is_kept_with_its_reason(cache: Cache) -> None:
    cache.put(KEY, failed("pages"))
    found = cache.get(KEY)
    assert isinstance(found, ConversionFailed)
    assert (found.kind, found.reason, found.limits) == ("pages", "there is no page", Limits())
    assert str(found) == str(failed())


@pytest.mark.parametrize("kind", ["killed", "busy", "closed"])
def test_a_failure_of_the_moment_is_not_kept(cache: Cache, kind: FailureKind) -> None:
    cache.put(KEY, failed(kind))
    assert cache.get(KEY) is None


def test_a_failure_counts_for_limits_that_are_no_larger(cache: Cache) -> None:
    cache.put(KEY, failed("time", Limits(seconds=5.0, pages=10)))
    assert isinstance(cache.get(KEY, Limits(seconds=5.0, pages=10)), ConversionFailed)
    assert isinstance(cache.get(KEY, Limits(seconds=1.0, pages=1)), ConversionFailed)
    assert cache.get(KEY, Limits(seconds=6.0, pages=10)) is None
    assert cache.get(KEY, Limits(seconds=1.0, pages=11)) is None


def test_content_beyond_the_limit_of_now_is_no_result_and_yet_stays(cache: Cache) -> None:
    cache.put(KEY, converted(b"12345"))
    tight = Limits(output_bytes=4)
    assert cache.get(KEY, tight) is None
    cache.put(KEY, failed("output", tight))
    assert isinstance(cache.get(KEY, Limits(output_bytes=5)), ConversionResult)


def test_a_success_takes_the_place_of_a_failure(cache: Cache) -> None:
    cache.put(KEY, failed("time"))
    cache.put(KEY, converted())
    assert isinstance(cache.get(KEY), ConversionResult)


def test_every_cut_and_every_flipped_byte_of_an_entry_is_a_miss_that_goes(
    cache: Cache, tmp_path: Path
) -> None:
    cache.put(KEY, converted())
    (path,) = entry_paths(tmp_path / "kept")
    whole = path.read_bytes()
    damaged = [whole[:length] for length in range(len(whole))]
    for place in range(len(whole)):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << place % 8
        damaged.append(bytes(flipped))
    for content in (*damaged, whole + b"\0", whole + whole, b"\n" * 100_000):
        path.write_bytes(content)
        assert cache.get(KEY) is None
        assert not path.exists()
    path.write_bytes(whole)
    path.chmod(0o600)
    assert isinstance(cache.get(KEY), ConversionResult)


def test_an_entry_under_the_name_of_another_is_foreign(cache: Cache, tmp_path: Path) -> None:
    cache.put(KEY, converted())
    (path,) = entry_paths(tmp_path / "kept")
    other = key(1)
    place = tmp_path / "kept" / other.digest[:2] / other.digest[2:]
    place.parent.mkdir(mode=0o700)
    shutil.copy(path, place)
    assert cache.get(other) is None
    assert not place.exists()
    assert isinstance(cache.get(KEY), ConversionResult)


def test_those_go_first_that_were_not_used_for_longest(tmp_path: Path) -> None:
    cache = Cache(tmp_path, bytes_max=8 * 4096)
    for number in range(8):
        cache.put(key(number), converted())
    assert cache.get(key(0)) is not None
    cache.put(key(8), converted())
    kept = [number for number in range(9) if cache.get(key(number)) is not None]
    # Of nine blocks seven stay, an eighth of the limit below it.
    assert kept == [0, 3, 4, 5, 6, 7, 8]


def test_what_is_larger_than_the_limit_is_not_kept_and_drives_nothing_out(tmp_path: Path) -> None:
    cache = Cache(tmp_path, bytes_max=3 * 4096)
    cache.put(key(0), converted())
    cache.put(key(1), converted(bytes(3 * 4096)))
    assert cache.get(key(1)) is None
    assert cache.get(key(0)) is not None


def test_a_cache_that_was_full_when_it_was_opened_keeps_to_its_limit(tmp_path: Path) -> None:
    for number in range(16):
        Cache(tmp_path, bytes_max=MEBIBYTE).put(key(number), converted())
    Cache(tmp_path, bytes_max=4 * 4096).put(key(16), converted())
    assert len(entry_paths(tmp_path)) <= 4


def test_what_is_not_of_the_cache_is_left_alone(tmp_path: Path) -> None:
    strangers = [tmp_path / "notes.txt", tmp_path / "ab" / "notes.txt", tmp_path / "zz" / "a"]
    for path in strangers:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.write_bytes(bytes(10_000))
    cache = Cache(tmp_path, bytes_max=4096)
    for number in range(60):
        cache.put(key(number), converted())
    assert all(path.exists() for path in strangers)
    assert len(entry_paths(tmp_path)) == len(strangers) + 1


def test_a_draft_left_by_a_process_that_died_is_removed_in_time(tmp_path: Path) -> None:
    folder = tmp_path / "ab"
    folder.mkdir(mode=0o700)
    old, new = (folder / f".{'0' * 62}.{token * 16}.tmp" for token in "ab")
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    Cache(tmp_path, bytes_max=MEBIBYTE).put(KEY, converted())
    assert not old.exists()
    assert new.exists()


def test_only_the_owner_can_look_into_it(cache: Cache, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        cache.put(KEY, converted())
    finally:
        os.umask(before)
    (path,) = entry_paths(tmp_path / "kept")
    modes = [stat.S_IMODE(item.stat().st_mode) for item in (path.parent.parent, path.parent, path)]
    assert modes == [0o700, 0o700, 0o600]


def test_a_link_in_the_place_of_an_entry_is_replaced_and_never_followed(
    cache: Cache, tmp_path: Path
) -> None:
    cache.put(KEY, converted())
    (path,) = entry_paths(tmp_path / "kept")
    elsewhere = tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    whole = elsewhere.read_bytes()
    assert cache.get(KEY) is None
    cache.put(KEY, converted(b"another"))
    assert elsewhere.read_bytes() == whole
    assert cache.get(KEY) == replace(converted(b"another"), cached=True)


def test_a_link_in_the_place_of_a_folder_is_not_followed(cache: Cache, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / KEY.digest[:2]).symlink_to(elsewhere, target_is_directory=True)
    cache.put(KEY, converted())
    assert list(elsewhere.iterdir()) == []
    assert cache.get(KEY) is None


@pytest.mark.parametrize("what", ["folder", "entry"])
def test_what_others_can_write_to_is_not_believed(cache: Cache, tmp_path: Path, what: str) -> None:
    cache.put(KEY, converted())
    (path,) = entry_paths(tmp_path / "kept")
    item = path if what == "entry" else path.parent
    item.chmod(item.stat().st_mode | stat.S_IWOTH)
    assert cache.get(KEY) is None
    item.chmod(item.stat().st_mode & ~stat.S_IWOTH)
    assert cache.get(KEY) is not None


@pytest.mark.parametrize("what", ["folder", "pipe"])
def test_something_else_in_the_place_of_an_entry_is_a_miss(
    cache: Cache, tmp_path: Path, what: str
) -> None:
    place = tmp_path / "kept" / KEY.digest[:2] / KEY.digest[2:]
    place.parent.mkdir(parents=True, mode=0o700)
    if what == "folder":
        place.mkdir(mode=0o700)
    else:
        os.mkfifo(place, mode=0o600)
    assert cache.get(KEY) is None
    cache.put(KEY, converted())
    assert (cache.get(KEY) is None) == (what == "folder")


@pytest.mark.parametrize("directory", ["a-file", "a-file/below", "/proc/no-such-place"])
def test_a_directory_that_cannot_be_is_a_cache_that_keeps_nothing(
    tmp_path: Path, directory: str
) -> None:
    (tmp_path / "a-file").write_bytes(b"")
    cache = Cache(tmp_path / directory, bytes_max=MEBIBYTE)
    cache.put(KEY, converted())
    assert cache.get(KEY) is None


FULL = """
import resource, sys
from pathlib import Path
from distributary.media.cache import Cache
from distributary.media.cache_key import CacheKey
from distributary.media.result import ConversionResult
from distributary.content.media_type import MediaType

target = MediaType("image", "png")
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
cache = Cache(Path(sys.argv[1]), bytes_max=1 << 20)
for size in (100, 5000):
    key = CacheKey.of(bytes(size), "image/jpeg", target, "1")
    cache.put(key, ConversionResult(bytes(size), media_type=target, seconds=0.0, cached=False))
    print(cache.get(key) is not None)
"""


def test_a_disk_that_takes_no_more_keeps_nothing_and_leaves_nothing_half(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env=untraced(),
    )
    assert (ran.stdout, ran.stderr) == ("True\nFalse\n", "")
    assert len(entry_paths(tmp_path)) == 1


SHARING = """
import sys
from pathlib import Path
from distributary.media.cache import Cache
from distributary.media.cache_key import CacheKey
from distributary.media.result import ConversionResult
from distributary.content.media_type import MediaType

target = MediaType("image", "png")
cache = Cache(Path(sys.argv[1]), bytes_max=64 * 4096)
step = int(sys.argv[2])
found = 0
for number in range(400):
    # Every second one is of four that both use all the time, which stay; the others go.
    content = b"%d" % (number % 8 if number % 2 else 8 + number * step % 301)
    key = CacheKey.of(content, "image/jpeg", target, "1")
    result = cache.get(key)
    if result is None:
        result = ConversionResult(content * 500, media_type=target, seconds=0.0, cached=False)
        cache.put(key, result)
    else:
        assert result.content == content * 500
        found += 1
print(found)
"""


def test_two_processes_share_a_directory(tmp_path: Path) -> None:
    """Whatever one finds is whole, and together they stay near the limit."""
    both = [
        subprocess.Popen(
            [sys.executable, "-c", SHARING, str(tmp_path), str(step)], stdout=subprocess.PIPE
        )
        for step in (1, 5)
    ]
    found = [process.communicate(timeout=60)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert all(int(count) > 50 for count in found)
    assert len(entry_paths(tmp_path)) <= 64 * 9 / 8 + 2


def test_threads_share_a_cache(tmp_path: Path) -> None:
    cache = Cache(tmp_path, bytes_max=32 * 4096)
    wrong: list[int] = []

    def work(step: int) -> None:
        for number in range(150):
            name = number * step % 53
            found = cache.get(key(name))
            if found is None:
                cache.put(key(name), converted(b"%d" % name))
            elif not isinstance(found, ConversionResult) or found.content != b"%d" % name:
                wrong.append(name)

    threads = [threading.Thread(target=work, args=(step,)) for step in (1, 2, 3, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    cache.put(KEY, converted())
    assert len(entry_paths(tmp_path)) <= 32


def test_an_entry_that_is_wanted_after_all_is_not_removed(tmp_path: Path) -> None:
    files = CacheFiles(tmp_path)
    files.write(KEY.digest, (b"a",), used_ns=1_000)
    (listed,) = files.listing()
    files.touch(KEY.digest, used_ns=2_000)
    assert not files.remove(KEY.digest, used_ns=listed.used_ns)
    assert files.remove(KEY.digest, used_ns=2_000)
    assert files.remove(KEY.digest, used_ns=2_000)
    assert files.listing() == []


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("/var/kept", "/var/kept"),
        ("", "~/.cache"),
        ("not/absolute", "~/.cache"),
        (None, "~/.cache"),
    ],
)
def test_the_usual_place_is_where_the_system_keeps_such_things(
    monkeypatch: pytest.MonkeyPatch, setting: str | None, expected: str
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if setting is not None:
        monkeypatch.setenv("XDG_CACHE_HOME", setting)
    assert default_directory() == Path(expected).expanduser() / "distributary" / "media"


def test_a_cache_without_room_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="bytes_max: must be at least 1, not 0"):
        Cache(tmp_path, bytes_max=0)


_FORKED = """
import os, sys
from pathlib import Path
from distributary.media.cache import Cache
from distributary.media.cache_key import CacheKey
from distributary.media.result import ConversionResult
from distributary.content.media_type import MediaType

cache = Cache(Path(sys.argv[1]), bytes_max=1 << 20)
key = CacheKey.of(b"a map", "application/pdf", "image/jpeg", "1")
with cache._lock, cache._evicting:
    child = os.fork()
if child == 0:
    made = ConversionResult(b"a picture", MediaType("image", "jpeg"), seconds=0.1, cached=False)
    cache.put(key, made)
    os._exit(cache.get(key) is None)
sys.exit(os.waitpid(child, 0)[1])
"""


def test_a_process_forked_while_another_thread_is_at_it_is_not_stuck(tmp_path: Path) -> None:
    """The thread that would let go of a lock does not exist in there."""
    ran = subprocess.run(
        [sys.executable, "-c", _FORKED, str(tmp_path)], check=False, timeout=60, capture_output=True
    )
    assert ran.returncode == 0, ran.stderr
