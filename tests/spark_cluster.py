"""A real cluster of Spark for tests: a master and two workers, processes of this machine.

They come from the Python package, listen on the loopback interface and choose their own
ports, so that several clusters can run at the same time.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pyspark

from distributary.pipeline.java import ensure_java

__all__ = ["LOOPBACK", "cluster_environment", "listening_addresses", "standalone_cluster"]

LOOPBACK = "127.0.0.1"

_START_SECONDS_MAX = 120.0
_STOP_SECONDS_MAX = 30.0
_MASTER_URL = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = re.compile(r"(Successfully registered) with master")
# Nobody looks at a server of the cluster for its own sake; without it there is less to listen.
_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dspark.master.rest.enabled=false"


def cluster_environment() -> dict[str, str]:
    """Return the environment in which drivers and servers use the loopback interface only."""
    ensure_java()
    return {
        **os.environ,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": LOOPBACK,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }


@contextmanager
def standalone_cluster(
    folder: Path, *, workers: int = 2, cores: int = 1, memory: str = "1g"
) -> Iterator[tuple[str, list[int]]]:
    """Yield the URL of a cluster's master and the process ids of its servers.

    Parameters
    ----------
    folder
        Where logs and the folders of the workers go.
    workers
        How many processes, each with one executor.
    cores, memory
        Of each of them.
    """
    with ExitStack() as stack:
        master, url = stack.enter_context(
            _server(
                ["org.apache.spark.deploy.master.Master", "--host", LOOPBACK, *_PORTS],
                folder / "master.log",
                _MASTER_URL,
            )
        )
        pids = [master]
        for number in range(workers):
            pid, _ = stack.enter_context(
                _server(
                    [
                        *("org.apache.spark.deploy.worker.Worker", "--host", LOOPBACK, *_PORTS),
                        *("--cores", str(cores), "--memory", memory),
                        *("--work-dir", str(folder / f"worker-{number}"), url),
                    ],
                    folder / f"worker-{number}.log",
                    _REGISTERED,
                )
            )
            pids.append(pid)
        yield url, pids


_PORTS = ("--port", "0", "--webui-port", "0")


@contextmanager
def _server(arguments: list[str], log: Path, sign: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Run a server; yield its process id and what its log says once it is up."""
    environment = {**cluster_environment(), "SPARK_DAEMON_MEMORY": "256m"}
    environment["SPARK_DAEMON_JAVA_OPTS"] = _OPTIONS
    program = str(Path(environment["SPARK_HOME"]) / "bin" / "spark-class")
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            [program, *arguments],
            env=environment,
            cwd=log.parent,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process.pid, _wait_for(process, log, sign)
    finally:
        _stop(process)


def _wait_for(process: subprocess.Popen[bytes], log: Path, sign: re.Pattern[str]) -> str:
    """Return what the sign finds in the log, as soon as it is there."""
    end = time.monotonic() + _START_SECONDS_MAX
    while time.monotonic() < end:
        found = sign.search(log.read_text(encoding="utf-8", errors="replace"))
        if found:
            return found[1]
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
        break
    raise RuntimeError(f"the server did not start: {log.read_text('utf-8')[-2000:]}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a server and what it started; a worker takes its executors with it."""
    children = psutil.Process(process.pid).children(recursive=True) if _alive(process) else []
    process.terminate()
    try:
        process.wait(_STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    _, left = psutil.wait_procs(children, timeout=5.0)
    for child in left:
        child.kill()


def _alive(process: subprocess.Popen[bytes]) -> bool:
    return process.poll() is None


def listening_addresses(pids: list[int]) -> set[str]:
    """Return the addresses on which processes, and those that they started, listen."""
    found = set()
    for pid in pids:
        server = psutil.Process(pid)
        for process in (server, *server.children(recursive=True)):
            for connection in process.net_connections("inet"):
                if connection.status == psutil.CONN_LISTEN:
                    found.add(str(connection.laddr.ip))
    return found
