"""The command `distributary`: one file per subcommand, and one way to fail.

Whatever is wrong with the input, the user sees one line on standard error that says
what and where, and the exit code is 2, or 3 if another job is in the way. Only faults of
distributary itself end in a traceback.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import typer

from distributary.errors import DistributaryError, TableBusy

__all__ = ["announce_compiling", "main"]

_INTERRUPTED = 130
_FAILED = 2
_BUSY = 3
_READER_GONE = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    The arguments follow the command's name; those of this process unless given.
    """
    # A stream that was closed before we began is None here, and asking it anything fails.
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            stream = Path(os.devnull).open("r+", encoding="utf-8")  # noqa: SIM115, open to the end
            setattr(sys, name, stream)
    warnings.showwarning = _warn
    announce_compiling()
    # Here rather than above, so that importing the package costs a library user nothing.
    from distributary.cli.app import app

    try:
        code = app(args=arguments, prog_name="distributary", standalone_mode=False)
        sys.stdout.flush()
    except TableBusy as error:
        return _fail(str(error), _BUSY)
    except DistributaryError as error:
        return _fail(str(error))
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "distributary"
        problem = error.format_message().replace("Value error, ", "").rstrip(".")
        return _fail(f"{command}: {problem}; hint: {command} --help")
    except typer.Abort:
        return _INTERRUPTED
    except KeyboardInterrupt:
        return _INTERRUPTED
    except SystemError as error:
        if not _was_interrupted(error):
            raise
        return _INTERRUPTED
    except OSError as error:
        _discard_output()
        if error.errno == errno.EPIPE:
            return _READER_GONE
        place = f"{error.filename}: " if error.filename else "output: "
        return _fail(place + (error.strerror or str(error)).lower())
    return code if isinstance(code, int) else 0


def announce_compiling() -> None:
    """Have people told when loops are compiled, on a terminal or not.

    It takes up to a minute, once; without a word it looks as if nothing happened.
    """
    log = logging.getLogger("distributary.kernels")
    if not log.handlers:
        log.addHandler(_ToPeople())
        log.setLevel(logging.INFO)
        log.propagate = False


class _ToPeople(logging.Handler):
    """Prints to standard error, whatever that is when there is something to say."""

    def emit(self, record: logging.LogRecord) -> None:
        print(record.getMessage(), file=sys.stderr, flush=True)


def _was_interrupted(error: BaseException | None) -> bool:
    """Say whether an interrupt came while compiled code handed its result to Python.

    It is the first cause then of an error in that code.
    """
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning as one line, without the line of code that it comes from."""
    print("warning:", " ".join(str(message).split()), file=sys.stderr)


def _fail(message: str, code: int = _FAILED) -> int:
    # Printed plainly: Rich would wrap it to the terminal, and a log would then hold half
    # a sentence per line.
    print("error:", " ".join(message.split()), file=sys.stderr)
    return code


def _discard_output() -> None:
    """Send what is still buffered nowhere, so that Python does not fail again on exit."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
