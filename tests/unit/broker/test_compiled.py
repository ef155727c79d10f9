"""What is compiled is loaded before a broker's first turn, and not within one."""

from __future__ import annotations

import subprocess
import sys

# In a process of its own: in this one others have planned already.
_PROGRAM = """
import sys

from tests.content_worlds import JPEG, PDF, ContentWorld

from distributary.broker.broker import Broker

def loaded():
    modules = [m for name, m in sys.modules.items() if name.startswith("distributary.")]
    found = {id(v): v for m in modules for v in vars(m).values() if hasattr(v, "signatures")}
    return sorted((v.__name__, str(s)) for v in found.values() for s in v.signatures)

turns = []
start = Broker.start

def first_turn(broker, *, now_ns):
    turns.append(loaded())
    return start(broker, now_ns=now_ns)

Broker.start = first_turn
world = ContentWorld(6)
for place, home in enumerate(world.members):
    wanted = (PDF, JPEG)[place % 2]
    world.subscribe(f"s{place}", home, ({"exact": {"type": "map"}},), accept=[wanted])
world.run_s(3)
world.publish("map", world.members[5])
world.run_s(30)
assert world.once.made == 6
assert turns[0], "nothing is loaded"
late = [one for one in loaded() if one not in turns[0]]
assert not late, late
"""


def test_the_first_item_finds_everything_loaded() -> None:
    run = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=False, timeout=300
    )
    assert run.returncode == 0, run.stderr
