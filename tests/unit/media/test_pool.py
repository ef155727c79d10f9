"""A pool of workers converts, whatever it is given, and its caller goes on."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from concurrent.futures import wait as wait_for
from contextlib import suppress
from pathlib import Path

import pytest
from tests.hostile_plugin import SCRIPT, SCRIPT_RESULT
from tests.scripts_pool import begun, eventually, failure, gone, plugged_in, run, start
from tests.tiny_media import tiny

from distributary.content.media_type import MediaType
from distributary.errors import BadInput
from distributary.media import worker_pool
from distributary.media.cache import Cache
from distributary.media.failure import ConversionFailed
from distributary.media.limits import Limits
from distributary.media.pool import Pool, shared_pool
from distributary.media.result import ConversionResult

UTF_8, UTF_16 = "text/plain;charset=utf-8", "text/plain;charset=utf-16"
TEXT = "Grüße aus Toronto"
MEBIBYTE = 1 << 20
FORGED = b"\0\0\0\x0c" + bytes(8) + b'{"kind":[1]}'

pytestmark = pytest.mark.usefixtures("scripts")
linux = pytest.mark.skipif(sys.platform != "linux", reason="what Linux alone enforces")


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with plugged_in(tmp_path_factory.mktemp("plugin")):
        yield


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many attempts to start a worker as ever, at once."""
    monkeypatch.setattr(worker_pool, "_PAUSES_SECONDS", (0.0, 0.0, 0.0))


@pytest.fixture(scope="module")
def pool(scripts: None) -> Iterator[Pool]:
    with Pool(1, limits=Limits(seconds=60)) as pool:
        yield pool


def test_text_is_converted_in_another_process(pool: Pool) -> None:
    result = pool.convert(TEXT.encode(), UTF_8, UTF_16)
    assert result.content.decode("utf-16") == TEXT
    assert result.media_type == MediaType.parse(UTF_16)
    assert 0 < result.seconds < 60
    assert not result.cached
    assert run(pool, "pid") == str(pool.pids()[0]).encode()
    assert os.getpid() not in pool.pids()


def test_the_seconds_of_short_conversions_are_told_too(pool: Pool) -> None:
    """A clock that moves with the ticks of the system would say 0 for nearly all of them."""
    content = TEXT.encode() * (50_000 // len(TEXT))
    seconds = [pool.convert(content, UTF_8, UTF_16).seconds for _ in range(50)]
    assert min(seconds) > 0.0
    assert max(seconds) < 1.0


def test_one_worker_is_used_again_and_again(pool: Pool) -> None:
    assert len({run(pool, "pid") for _ in range(20)}) == 1


def test_formats_go_by_their_other_names_too(pool: Pool) -> None:
    assert run(pool, "echo hello") == b"hello"
    result = pool.convert(TEXT.encode(), "text/plain;charset=UTF-8", "text/plain;charset=UTF-16")
    assert result.media_type == MediaType.parse(UTF_16)


@pytest.mark.parametrize(
    ("script", "limits", "kind", "reason"),
    [
        ("spin-for-ever", Limits(seconds=0.3), "time", "it takes more than 0.3 s"),
        ("memory 2000000000", Limits(memory_bytes=64 * MEBIBYTE), "memory", "67,108,864 bytes"),
        ("large 1000", Limits(output_bytes=999), "output", "it becomes 1,000 bytes; 999 are"),
        ("echo 1234567890", Limits(input_bytes=10), "input", "it has 15 bytes; 10 are allowed"),
        ("crash", None, "crashed", "its worker ended by SIGSEGV"),
        (
            "abort",
            None,
            "crashed",
            "its worker ended by SIGABRT, as many do that run out of memory",
        ),
        ("exit 3", None, "crashed", "its worker ended with status 3"),
        ("exit 0", None, "crashed", "its worker ended with status 0"),
        ("system-exit 4", None, "crashed", "its worker ended with status 4"),
        ("refuse it has 600 pages", None, "pages", "it has 600 pages"),
        (
            "raise it is broken",
            None,
            "faulty",
            "its converter is at fault: ValueError: it is broken",
        ),
        ("nothing", None, "faulty", "its converter is at fault: TypeError: "),
        ("no-such-word", None, "faulty", "its converter is at fault: KeyError: 'no-such-word'"),
        ("link libstdc++.so.6: failed to map segment", None, "memory", "bytes of memory"),
        ("reread 12", None, "memory", "1,073,741,824 bytes of memory"),
        # Frames: half a one that says it is 4 GiB, one with too long a header, one whose
        # header is no object, an answer without what belongs in it, and a failure of a kind
        # that is a list.
        ("scribble 00000002ffffffffffffffff7b7d", None, "crashed", "nonsense"),
        ("scribble ffffffff00000000000000007b7d", None, "crashed", "nonsense"),
        ("scribble 0000000200000000000000005b5d", None, "crashed", "nonsense"),
        ("scribble 0000000200000000000000007b7d", None, "crashed", "nonsense"),
        (f"scribble {FORGED.hex()}", None, "damaged", "it is not what it says"),
    ],
)
def test_a_failure_says_what_stopped_it_and_the_next_conversion_works(
    pool: Pool, script: str, limits: Limits | None, kind: str, reason: str
) -> None:
    failed = failure(pool, script, limits)
    assert failed.kind == kind
    assert reason in failed.reason
    assert failed.limits == (limits or pool.limits)
    assert (str(failed.source), str(failed.target)) == (SCRIPT, SCRIPT_RESULT)
    assert run(pool, "echo alive") == b"alive"


def test_a_worker_that_is_too_late_is_killed_and_replaced(pool: Pool) -> None:
    before = pool.pids()
    failure(pool, "spin-for-ever", Limits(seconds=0.2))
    assert int(run(pool, "pid")) not in before
    assert all(gone(pid) for pid in before)


def test_a_failure_that_is_understood_does_not_cost_the_worker(pool: Pool) -> None:
    before = run(pool, "pid")
    failure(pool, "raise it is broken")
    failure(pool, "refuse it has 600 pages")
    assert run(pool, "pid") == before


def test_a_reason_is_one_short_line_without_paths_of_the_machine(pool: Pool) -> None:
    long = "x" * 5000
    reason = failure(pool, f"raise no \x1b[31m file '/home/somebody/secret.txt'|here {long}").reason
    assert reason.startswith("its converter is at fault: ValueError: no [31m file '' here xxx")
    assert len(reason) <= 200
    assert reason.isprintable()


def test_memory_of_one_conversion_is_not_charged_to_the_next(pool: Pool) -> None:
    limits = Limits(memory_bytes=200 * MEBIBYTE)
    for _ in range(3):
        assert run(pool, f"memory {120 * MEBIBYTE}", limits) == b"had it"


def test_a_conversion_may_be_allowed_more_than_its_pool_usually_allows() -> None:
    with Pool(1, limits=Limits(memory_bytes=64 * MEBIBYTE)) as pool:
        amount = 3 * 1024 * MEBIBYTE
        assert failure(pool, f"memory {100 * MEBIBYTE}").kind == "memory"
        before = run(pool, "pid")
        assert run(pool, "pid", Limits(memory_bytes=amount)) != before
        assert run(pool, f"memory {100 * MEBIBYTE}", Limits(memory_bytes=amount)) == b"had it"


def test_a_worker_that_has_grown_is_replaced() -> None:
    with Pool(1, limits=Limits(memory_bytes=2048 * MEBIBYTE)) as pool:
        first = run(pool, "pid")
        assert run(pool, f"keep {100 * MEBIBYTE}") == b"kept it"
        assert run(pool, "pid") == first
        assert run(pool, f"keep {500 * MEBIBYTE}") == b"kept it"
        assert run(pool, "pid") != first


def test_what_a_converter_prints_goes_nowhere(
    pool: Pool, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(pool, "print") == b"printed"
    assert capfd.readouterr() == ("", "")


@linux
def test_a_converter_reaches_no_network_no_program_and_no_other_process(
    pool: Pool, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert run(pool, f"connect {server.getsockname()[1]}") != b"done"
    assert run(pool, "fork") == b"PermissionError"
    assert run(pool, "program true") == b"PermissionError"
    assert run(pool, f"write {tmp_path / 'outside'}") == b"PermissionError"
    assert run(pool, "write inside") == b"done"
    isolation = pool.isolation()
    assert isolation is not None
    assert isolation.memory_limited
    assert isolation.ends_with_caller


def test_a_worker_sees_no_secrets_of_its_caller(
    scripts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "42")
    with Pool(1) as pool:
        seen = json.loads(run(pool, "environment"))
    assert "SECRET_TOKEN" not in seen
    assert seen["HOME"] == seen["TMPDIR"] != os.environ.get("HOME")
    assert not Path(seen["TMPDIR"]).exists()


def test_temporary_files_do_not_outlive_their_conversion(pool: Pool) -> None:
    assert run(pool, "leave folder") == b"left"
    assert json.loads(run(pool, "list")) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_killed_in_mid_conversion_fails_the_call_with_a_reason(
    pool: Pool, number: signal.Signals
) -> None:
    with begun(pool) as (future, pid):
        os.kill(pid, number)
        with pytest.raises(ConversionFailed, match=f"ended by {number.name}") as caught:
            future.result(120)
    assert caught.value.kind == "killed"
    assert not caught.value.lasting
    assert run(pool, "echo alive") == b"alive"


def test_a_worker_killed_between_two_conversions_is_not_missed(pool: Pool) -> None:
    for _ in range(2):
        os.kill(int(run(pool, "pid")), signal.SIGKILL)
        assert run(pool, "echo alive") == b"alive"


def test_the_temporary_directory_goes_with_the_worker() -> None:
    with Pool(1) as pool:
        directory = Path(run(pool, "directory").decode())
        assert directory.is_dir()
        failure(pool, "crash")
        assert not directory.exists()
        after = Path(run(pool, "directory").decode())
    assert not after.exists()


def test_too_many_waiting_conversions_fail_at_once() -> None:
    with Pool(1, waiting_max=2) as pool, begun(pool) as (running, _):
        waiting = [start(pool, "echo later") for _ in range(2)]
        refused = start(pool, "echo refused")
        assert refused.done()
        error = refused.exception()
        assert isinstance(error, ConversionFailed)
        assert error.kind == "busy"
        assert not error.lasting
        assert waiting[0].cancel()
        assert not start(pool, "echo instead").done()
        assert not running.done()


def test_nobody_has_to_wait_where_workers_are_free() -> None:
    with Pool(2, waiting_max=0) as pool:
        futures = [start(pool, "echo hello") for _ in range(2)]
        assert [future.result(120).content for future in futures] == [b"hello"] * 2


def test_a_waiting_conversion_can_be_cancelled() -> None:
    with Pool(1) as pool:
        with begun(pool) as (running, pid):
            waiting = start(pool, "echo never")
            assert waiting.cancel()
            os.kill(pid, signal.SIGKILL)
            assert running.exception(120) is not None
        assert run(pool, "echo next") == b"next"
        with pytest.raises(CancelledError):
            waiting.result(0)


def test_closing_fails_what_runs_and_what_waits_and_leaves_nothing() -> None:
    before = set(threading.enumerate())
    pool = Pool(1)
    with begun(pool) as (running, pid):
        waiting = start(pool, "echo never")
        pool.close()
        for future in (running, waiting, start(pool, "echo too late")):
            error = future.exception(0)
            assert isinstance(error, ConversionFailed)
            assert error.kind == "closed"
    assert gone(pid)
    assert pool.pids() == ()
    assert set(threading.enumerate()) <= before
    pool.close()


def test_a_callback_of_a_result_may_close_the_pool() -> None:
    pool = Pool(1)
    closed = threading.Event()

    def close(_: Future[ConversionResult]) -> None:
        pool.close()
        closed.set()

    start(pool, "echo hello").add_done_callback(close)
    assert closed.wait(120)
    eventually(lambda: pool.pids() == ())


def test_a_pool_that_nobody_remembers_leaves_no_process() -> None:
    pool = Pool(1)
    pid = int(run(pool, "pid"))
    del pool
    eventually(lambda: gone(pid))


def test_many_threads_share_a_pool() -> None:
    with Pool(2) as pool:
        results: dict[int, bytes] = {}

        def ask(number: int) -> None:
            results[number] = run(pool, f"echo {number}")

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(30)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert results == {number: str(number).encode() for number in range(30)}
        assert len(pool.pids()) == 2


def test_workers_start_when_they_are_needed() -> None:
    with Pool(3) as pool:
        assert pool.workers == 3
        assert pool.pids() == ()
        assert pool.isolation() is None
        run(pool, "echo hello")
        assert len(pool.pids()) == 1


def test_large_content_goes_in_and_out_whole(pool: Pool) -> None:
    content = "äöü€".encode() * (4 * MEBIBYTE)
    result = pool.convert(content, UTF_8, UTF_16)
    assert result.content.decode("utf-16") == content.decode()


def test_what_no_converter_does_is_impossible(pool: Pool) -> None:
    with pytest.raises(ConversionFailed, match="no converter does this") as caught:
        pool.convert(b"", "audio/wav", "application/pdf")
    assert caught.value.kind == "impossible"
    with pytest.raises(ConversionFailed) as caught:
        pool.convert_along(b"", "audio/wav", "application/pdf")
    assert caught.value.kind == "impossible"


def test_a_route_is_gone_step_by_step(pool: Pool) -> None:
    speech = pool.convert_along(TEXT.encode("utf-16"), UTF_16, "audio/wav")
    assert speech.content[:4] == b"RIFF"
    assert speech.media_type == MediaType("audio", "wav")
    same = pool.convert_along(b"as it is", UTF_8, UTF_8)
    assert (same.content, same.seconds) == (b"as it is", 0.0)


@pytest.mark.parametrize(
    ("source", "target", "beginning"),
    [
        ("application/pdf", "image/jpeg;width=320", b"\xff\xd8\xff"),
        ("application/pdf", "text/plain;charset=utf-16", b"\xff\xfe"),
        ("image/png", "image/webp;width=100", b"RIFF"),
        ("text/plain", "audio/wav", b"RIFF"),
        ("audio/wav", "audio/mpeg", b"ID3"),
        ("video/mp4", "video/x-flv;width=176;bitrate=80k", b"FLV"),
    ],
)
def test_real_converters_work_within_the_limits_of_a_worker(
    pool: Pool, source: str, target: str, beginning: bytes
) -> None:
    assert pool.convert_along(tiny(source), source, target).content.startswith(beginning)


@pytest.mark.parametrize(
    "arguments", [{"workers": 0}, {"waiting_max": -1}], ids=["workers", "waiting"]
)
def test_a_pool_of_nothing_is_refused(arguments: dict[str, int]) -> None:
    with pytest.raises(BadInput):
        Pool(**arguments)  # type: ignore[arg-type]


def test_a_format_that_is_none_is_bad_input(pool: Pool) -> None:
    with pytest.raises(BadInput, match="target"):
        pool.convert(b"", UTF_8, "nonsense")


def test_a_kept_result_is_answered_without_a_worker(tmp_path: Path) -> None:
    cache = Cache(tmp_path, bytes_max=10 * MEBIBYTE)
    with Pool(1, cache=cache) as pool:
        first = pool.convert(TEXT.encode(), UTF_8, UTF_16)
        again = pool.convert(TEXT.encode(), UTF_8, UTF_16)
    with Pool(1, cache=cache) as pool:
        later = pool.convert_along(TEXT.encode(), UTF_8, UTF_16)
        assert pool.pids() == ()
    assert (first.cached, again.cached, later.cached) == (False, True, True)
    assert first.content == again.content == later.content
    assert first.seconds == again.seconds == later.seconds


def test_lasting_failures_are_kept_and_passing_ones_are_not(tmp_path: Path) -> None:
    cache = Cache(tmp_path, bytes_max=10 * MEBIBYTE)
    with Pool(1, cache=cache) as pool:
        assert failure(pool, "crash").kind == "crashed"
        with begun(pool) as (future, pid):
            os.kill(pid, signal.SIGKILL)
            assert isinstance(future.exception(120), ConversionFailed)
    with Pool(1, cache=cache) as pool:
        assert failure(pool, "crash").kind == "crashed"
        assert pool.pids() == ()
        assert failure(pool, "mark-and-wait begun", Limits(seconds=0.2)).kind == "time"


def test_a_cached_answer_does_not_wait_for_running_conversions(tmp_path: Path) -> None:
    with Pool(1, cache=Cache(tmp_path, bytes_max=10 * MEBIBYTE)) as pool:
        run(pool, "echo known")
        with begun(pool) as (running, _):
            assert run(pool, "echo known") == b"known"
            assert not running.done()


def test_there_is_one_shared_pool() -> None:
    assert shared_pool() is shared_pool()
    result = shared_pool().convert(TEXT.encode(), UTF_8, UTF_16)
    assert result.content.decode("utf-16") == TEXT


def test_every_future_of_a_burst_is_answered() -> None:
    """A mixture of good and bad content, submitted at once, loses nobody."""
    with Pool(2) as pool:
        words = ["echo fine", "crash", "raise no", "exit 1", "echo fine"] * 4
        futures = [start(pool, word) for word in words]
        done, waiting = wait_for(futures, timeout=120)
        assert not waiting
        assert len(done) == len(words)
        fine = [future for future in futures if future.exception() is None]
        assert len(fine) == 8


def test_the_most_that_limits_may_be_is_understood_by_the_system(pool: Pool) -> None:
    most = Limits(1e6, *[10**15] * 6)
    assert run(pool, "echo hello", most) == b"hello"
    with pytest.raises(BadInput, match="seconds: must be at most 1,000,000"):
        Limits(seconds=1e300)
    with pytest.raises(BadInput, match="memory_bytes: must be at most"):
        Limits(memory_bytes=2**64)


def test_memory_that_was_freed_is_not_the_next_conversions(pool: Pool) -> None:
    """A limit counts from what a worker occupies, which must not include what it has to spare."""
    run(pool, f"memory {30 * MEBIBYTE}")
    assert failure(pool, f"memory {30 * MEBIBYTE}", Limits(memory_bytes=8 * MEBIBYTE)).kind == (
        "memory"
    )


def test_a_worker_that_is_too_late_is_gone_before_anybody_hears_of_it() -> None:
    with Pool(1) as pool:
        (pid,) = {int(run(pool, "pid"))}
        seen = threading.Event()
        ended: list[bool] = []

        def look(_: Future[ConversionResult]) -> None:
            eventually(lambda: gone(pid))
            ended.append(gone(pid))
            seen.set()

        start(pool, "spin-for-ever", Limits(seconds=0.2)).add_done_callback(look)
        assert seen.wait(120)
        assert ended == [True]


@pytest.mark.usefixtures("no_pauses")
def test_a_worker_that_does_not_start_says_why_and_the_next_one_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stops it here is a module of its own that cannot be loaded."""
    (tmp_path / "struct.py").write_text("raise ImportError('half of it is missing')")
    with Pool(1) as pool:
        with monkeypatch.context() as patch:
            patch.syspath_prepend(tmp_path)
            failed = failure(pool, "echo hello")
        assert failed.kind == "killed"
        assert failed.reason == (
            "no worker starts: its worker ended with status 1: ImportError: half of it is missing"
        )
        assert run(pool, "echo hello") == b"hello"


def test_a_worker_that_starts_at_the_second_attempt_is_not_missed(tmp_path: Path) -> None:
    (tmp_path / "struct.py").write_text(
        "from pathlib import Path; Path(__file__).unlink(); raise ImportError('not yet')"
    )
    with pytest.MonkeyPatch.context() as patch, Pool(1) as pool:
        patch.syspath_prepend(tmp_path)
        assert run(pool, "echo hello") == b"hello"


@pytest.mark.usefixtures("no_pauses")
def test_no_directory_is_left_where_no_worker_can_be_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is missing here are file descriptors."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = []
    with Pool(1) as pool:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1024), hard))
            with suppress(OSError):
                while True:
                    held.append(os.dup(0))
            assert failure(pool, "echo hello").kind == "killed"
        finally:
            for descriptor in held:
                os.close(descriptor)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert list(tmp_path.iterdir()) == []
        assert run(pool, "echo hello") == b"hello"
