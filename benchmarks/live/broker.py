"""A broker whose ways are given, so that a study knows them.

`python -m benchmarks.live.broker FILE.toml DELAYS.json` is `distributary broker`, but the delays to
the others are in the second file, by name in milliseconds. On one machine all are equally near.
With a third file, it writes there in the end what its witness has cost.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.live.witnessed import Witnessed
from distributary.broker.host import Neighbour, Surroundings
from distributary.network.config import Config, read_config
from distributary.network.logs import log_to_stderr
from distributary.network.process import run_broker

__all__: list[str] = []


@dataclass(frozen=True)
class _Placed(Config):
    delays: tuple[Neighbour, ...] = ()

    def surroundings(self) -> Surroundings:
        """Return what the broker is told of the others."""
        return dataclasses.replace(super().surroundings(), neighbours=self.delays)


def _main(config: str, delays: str, witnessed: str | None = None) -> int:
    read = read_config(config, {})
    told = json.loads(Path(delays).read_text(encoding="utf-8"))
    neighbours = tuple(Neighbour(name, int(ms * 1e6)) for name, ms in sorted(told.items()))
    fields = {one.name: getattr(read, one.name) for one in dataclasses.fields(read)}
    log_to_stderr(read.broker.identity)
    seen = None if witnessed is None else Witnessed()
    code = run_broker(_Placed(**fields, delays=neighbours))
    if seen is not None and witnessed is not None:
        Path(witnessed).write_text(json.dumps(seen.cost()), encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
