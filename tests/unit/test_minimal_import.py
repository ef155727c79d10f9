"""The library needs NumPy and Numba and nothing else that is installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Runs before the import under test: hides every installed module but the allowed ones.
# Numba brings llvmlite along.
BLOCK = """
import sys

ALLOWED = {"distributary", "numpy", "numba", "llvmlite"}
KNOWN = ALLOWED | sys.stdlib_module_names | set(sys.builtin_module_names)

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in KNOWN:
            raise ModuleNotFoundError(f"No module named {name!r} (hidden)", name=name)
        return None

for name in list(sys.modules):
    if name.partition(".")[0] not in KNOWN and name != "__main__":
        del sys.modules[name]
sys.meta_path.insert(0, Blocker())
"""

PLAN = """
import numpy as np
from distributary.content import AdaptationGraph
from distributary.placement import PlacementProblem, place
from distributary.topology import DisseminationTree, TreeNode

graph = AdaptationGraph.from_conversions([("pdf", 5.0), ("jpeg", 2.0)], [("pdf", "jpeg", 3.0)])
tree = DisseminationTree.from_nodes([TreeNode("N1", None), TreeNode("N2", "N1")])
wants = np.array([[False, False], [True, False]])
held = np.array([False, True])
print(place(PlacementProblem(graph, tree, wants, held)).total_cost)
"""

TREE = """
import numpy as np
from distributary.fidelity import FidelityProblem, build_trees

problem = FidelityProblem.in_order(
    names=["a", "s"],
    source="s",
    objects=["o"],
    rates=np.array([[1.0], [1.5]]),
    filter_times=np.array([0.005, 0.001]),
    send_times=np.array([0.001, 0.000125]),
    delays=np.array([[0.0, 0.02], [0.02, 0.0]]),
)
print(build_trees(problem).forest.parents.tolist())
"""


SDK = """
from distributary.content import Publication
from distributary.content.cloudevents_sdk import to_sdk
from distributary.errors import MissingPackage

try:
    to_sdk(Publication({"specversion": "1.0", "id": "1", "source": "/", "type": "a"}))
except MissingPackage as error:
    print(error)
"""


def run_alone(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BLOCK + code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("module", ["typer", "hypothesis"])
def test_the_blocker_hides_what_is_installed(module: str) -> None:
    result = run_alone(f"import {module}")
    assert result.returncode == 1
    assert "(hidden)" in result.stderr


def test_packages_import_and_plans_are_made_with_numpy_and_numba_alone() -> None:
    """Nothing is imported late, on the way to a plan, that the import did not need."""
    packages = ("content", "filters", "topology", "placement", "fidelity")
    imports = "".join(f"import distributary.{name}\n" for name in packages)
    result = run_alone(f"import distributary\n{imports}{PLAN}{TREE}")
    assert result.returncode == 0, result.stderr
    assert result.stdout == "5.0\n[[-1, 0]]\n"


def test_a_missing_sdk_is_answered_with_the_command_that_installs_it() -> None:
    result = run_alone(SDK)
    assert result.returncode == 0, result.stderr
    assert result.stdout == (
        "an event of the official SDK needs cloudevents, which is not installed; "
        'hint: pip install "distributary[cloudevents]"\n'
    )
