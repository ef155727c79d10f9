"""Certificates for tests, made by `openssl` for this machine."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

__all__ = ["Authority"]


class Authority:
    """Somebody whose certificates are believed, and that of a server on this machine."""

    def __init__(self, folder: Path) -> None:
        program = shutil.which("openssl")
        if program is None:
            pytest.skip("openssl is not installed")
        self._program = program
        folder.mkdir(parents=True)
        self._folder = folder
        self.certificate = folder / "authority.pem"
        key = folder / "authority.key"
        new = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
        self._run(
            *(*new, "-nodes", "-days", "2", "-subj", "/CN=authority"),
            *("-keyout", str(key), "-out", str(self.certificate)),
        )
        self._run(
            *(*new, "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-addext", "basicConstraints=critical,CA:FALSE"),
            *("-CA", str(self.certificate), "-CAkey", str(key)),
            *("-keyout", str(folder / "server.key"), "-out", str(folder / "server.pem")),
        )

    def server(self) -> dict[str, str]:
        """What a NATS server is told."""
        return {
            "cert_file": str(self._folder / "server.pem"),
            "key_file": str(self._folder / "server.key"),
        }

    def _run(self, *arguments: str) -> None:
        subprocess.run([self._program, *arguments], check=True, capture_output=True, timeout=60)
