"""The rehearsal before brokers are forked."""

from __future__ import annotations

import subprocess
import sys

_LOOK = """
from distributary import kernels
from distributary.broker.driver import load_compiled
from distributary.broker.settings import Settings
from distributary.network.rehearsal import rehearse

rehearse()
kernels._FilePerSignature.load = lambda self, _: print(self._index_name)
load_compiled(Settings())
"""


def test_brokers_have_nothing_to_load_after_it() -> None:
    """What brokers would compile each for itself is compiled before there are any."""
    done = subprocess.run([sys.executable, "-c", _LOOK], capture_output=True, text=True, check=True)
    assert not done.stdout
