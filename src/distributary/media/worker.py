"""A worker: the process in which content is converted.

Started by a pool as `python -m distributary.media.worker FD`, with a socket as file
descriptor FD. It is told what it may use, answers with how it is isolated, and then
converts what it is sent, one after the other, until its caller is gone.
"""

from __future__ import annotations

import errno
import gc
import importlib
import os
import socket
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from distributary.content.media_type import MediaType
from distributary.media import sandbox
from distributary.media.channel import ChannelClosed, Frame, receive, send
from distributary.media.converter import Converter
from distributary.media.cut_short import with_length
from distributary.media.failure import FailureKind, Unconvertible
from distributary.media.limits import Limits
from distributary.media.registry import Registry, installed
from distributary.media.worker_directory import empty
from distributary.media.worker_exit import discard_start_errors

__all__ = ["main"]

_REASON_CHARACTERS_MAX = 1000
# How the dynamic linker, the C library and Pillow's codecs say that memory ran out.
_OUT_OF_MEMORY = (
    "failed to map segment",
    "cannot allocate memory",
    "out of memory",
    "encoder error -9",
    "decoder error -9",
)


def main(descriptor: int) -> None:
    """Convert what comes in, until nothing more does."""
    channel = socket.socket(fileno=descriptor)
    channel.set_inheritable(False)
    directory = Path.cwd()
    try:
        settings: Mapping[str, Any] = receive(channel, body_bytes_max=0).header
        caller = settings["caller"]
        isolation = sandbox.enter(directory, Limits(**settings["limits"]))
        # What is there now stays, and need not be looked at again after each conversion.
        registry = installed()
        gc.freeze()
        discard_start_errors()
        send(channel, {"ready": asdict(isolation)})
        resident_bytes = sandbox.resident_bytes()
        while True:
            # In a function, so that content and result are gone before the next one comes.
            _serve(channel, registry, caller=caller, resident_bytes=resident_bytes)
            # The next one must not find what a conversion left behind.
            os.chdir(directory)
            if not empty(directory):
                sys.exit(1)
    except ChannelClosed:
        # Our caller removes the directory, but not if it was killed.
        empty(directory)


def _serve(channel: socket.socket, registry: Registry, *, caller: int, resident_bytes: int) -> None:
    """Receive one job and answer it.

    The first frame of the answer says that the content has arrived: should this process be
    gone before it, the caller knows that another one may try.
    """
    job = receive(channel, body_bytes_max=sys.maxsize)
    send(channel, {"started": True})
    header, content = _answer(job, registry, caller=caller)
    worn = {
        "grown_bytes": sandbox.resident_bytes() - resident_bytes,
        "processor_seconds": sandbox.processor_seconds(),
    }
    send(channel, {**header, **worn}, content)


def _answer(job: Frame, registry: Registry, *, caller: int) -> tuple[dict[str, object], bytes]:
    header: Mapping[str, Any] = job.header
    limits = Limits(**header["limits"])
    converter = registry.converters.get(header["converter"])
    if converter is None:
        return _failure("impossible", "its worker does not find the converter"), b""
    source, target = (MediaType.parse(header[name]) for name in ("source", "target"))
    try:
        # Before the limits count: they are there for the content.
        for module, _ in converter.packages:
            importlib.import_module(module)
    except Exception as error:
        return _failure("impossible", f"its converter does not load: {error}"), b""
    try:
        with sandbox.held_to(limits, caller=caller):
            content, seconds = _convert(converter, job.body, source, target, limits)
    except Exception as error:
        kind, reason = _explained(error, limits)
        if kind == "damaged":
            reason = with_length(reason, job.body, source)
        return _failure(kind, reason), b""
    return {"seconds": seconds}, content


def _convert(
    converter: Converter, content: bytes, source: MediaType, target: MediaType, limits: Limits
) -> tuple[bytes, float]:
    # Time of the processor, as that is what planners weigh: the clock on the wall also counts
    # whatever else the machine does.
    begun = sandbox.processor_seconds()
    made = bytes(memoryview(converter.convert(content, source, target, limits)))
    seconds = sandbox.processor_seconds() - begun
    if len(made) > limits.output_bytes:
        raise Unconvertible(
            "output", f"it becomes {len(made):,} bytes; {limits.output_bytes:,} are allowed"
        )
    return made, seconds


def _explained(error: Exception, limits: Limits) -> tuple[FailureKind, str]:
    if _is_out_of_memory(error):
        return "memory", f"it needs more than {limits.memory_bytes:,} bytes of memory"
    if isinstance(error, Unconvertible):
        return error.kind, error.reason
    if isinstance(error, OSError):
        if error.errno == errno.EFBIG:
            return "output", "it needs a temporary file that is larger than allowed"
        said = error.strerror or str(error)
    else:
        said = str(error)
    # A converter tells what is wrong with content. This it did not foresee.
    return "faulty", ": ".join(
        filter(None, ("its converter is at fault", type(error).__name__, said))
    )


def _is_out_of_memory(error: BaseException | None) -> bool:
    """Whether an exception, or what it was raised from, is for want of memory."""
    while error is not None:
        if isinstance(error, MemoryError):
            return True
        if isinstance(error, OSError | ImportError):
            if isinstance(error, OSError) and error.errno == errno.ENOMEM:
                return True
            said = str(error).lower()
            if any(words in said for words in _OUT_OF_MEMORY):
                return True
        error = error.__cause__
    return False


def _failure(kind: FailureKind, reason: str) -> dict[str, object]:
    return {"kind": kind, "reason": reason[:_REASON_CHARACTERS_MAX]}


if __name__ == "__main__":
    main(int(sys.argv[1]))
