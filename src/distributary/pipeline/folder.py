"""Folders that tables live in: of this machine, or of any file system that Hadoop knows."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from distributary.errors import BadInput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Folder", "open_folder"]


class Folder(ABC):
    """A folder in which things are called by names relative to it."""

    @abstractmethod
    def path(self, name: str) -> str:
        """Return the whole path or URL of something."""

    @abstractmethod
    def exists(self, name: str) -> bool:
        """Whether it is there."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return what is in the folder, sorted; hidden things too."""

    @abstractmethod
    def make(self, name: str) -> None:
        """Make a folder, and those above it."""

    @abstractmethod
    def rename(self, name: str, other: str) -> None:
        """Give something another name that nothing has yet."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a file or a folder with all it holds, if it is there."""

    @abstractmethod
    def read_text(self, name: str) -> str | None:
        """Return the text of a small file; None if it is not there."""

    @abstractmethod
    def write_text(self, name: str, text: str) -> None:
        """Write a small file."""


def open_folder(spark: SparkSession | None, location: str) -> Folder:
    """Return the folder at a path, or at a URL of a file system that Hadoop knows.

    Of the latter only the names of things are known without Spark.
    """
    scheme = urlsplit(location).scheme
    if scheme in ("", "file") or len(scheme) == 1:
        path = Path(urlsplit(location).path if scheme == "file" else location)
        if path.exists() and not path.is_dir():
            raise BadInput(str(path), "is a file, and must be a folder")
        return _LocalFolder(path.absolute())
    if spark is not None and not hasattr(spark, "_jvm"):
        raise BadInput(
            location,
            "cannot be used through Spark Connect",
            hint="use a folder that client and server share, or --master",
        )
    return _HadoopFolder(spark, location)


class _LocalFolder(Folder):
    def __init__(self, root: Path) -> None:
        self._root = root

    def path(self, name: str) -> str:
        return str(self._root / name)

    def exists(self, name: str) -> bool:
        return (self._root / name).exists()

    def names(self) -> list[str]:
        return sorted(item.name for item in self._root.iterdir()) if self._root.is_dir() else []

    def make(self, name: str) -> None:
        (self._root / name).mkdir(parents=True, exist_ok=True)

    def rename(self, name: str, other: str) -> None:
        (self._root / name).rename(self._root / other)

    def remove(self, name: str) -> None:
        path = self._root / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def read_text(self, name: str) -> str | None:
        path = self._root / name
        return path.read_text(encoding="utf-8") if path.is_file() else None

    def write_text(self, name: str, text: str) -> None:
        (self._root / name).write_text(text, encoding="utf-8")


class _HadoopFolder(Folder):
    """The same through Hadoop's file systems, which is how Spark itself sees them."""

    def __init__(self, spark: SparkSession | None, location: str) -> None:
        self._root = location.rstrip("/")
        if spark is None:
            return
        classic: Any = spark
        self._jvm: Any = classic._jvm
        self._path: Any = self._jvm.org.apache.hadoop.fs.Path
        self._system: Any = self._path(self._root).getFileSystem(classic._jsc.hadoopConfiguration())

    def path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def exists(self, name: str) -> bool:
        return bool(self._system.exists(self._at(name)))

    def names(self) -> list[str]:
        if not self._system.exists(self._path(self._root)):
            return []
        return sorted(
            str(item.getPath().getName())
            for item in self._system.listStatus(self._path(self._root))
        )

    def make(self, name: str) -> None:
        self._system.mkdirs(self._at(name))

    def rename(self, name: str, other: str) -> None:
        if not self._system.rename(self._at(name), self._at(other)):
            raise OSError(f"{self.path(name)} cannot be renamed to {other}")

    def remove(self, name: str) -> None:
        self._system.delete(self._at(name), True)

    def read_text(self, name: str) -> str | None:
        if not self.exists(name):
            return None
        stream = self._system.open(self._at(name))
        try:
            utils = self._jvm.org.apache.commons.io.IOUtils
            return str(utils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write_text(self, name: str, text: str) -> None:
        stream = self._system.create(self._at(name), True)
        try:
            stream.write(bytearray(text, "utf-8"))
        finally:
            stream.close()

    def _at(self, name: str) -> Any:
        return self._path(self.path(name))
