"""Notebooks without a server: run the cells in order, and write down what they show.

`python -m tests.notebooks FILE...` runs notebooks where they stand and replaces their outputs, as
"Restart and run all" does in Jupyter. Jupyter itself would bring thirty packages to do so. What
works there and here is Python, and lines that begin with `!` for a command of the shell.
"""

from __future__ import annotations

import ast
import io
import json
import os
import re
import subprocess
import sys
import traceback
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

__all__ = ["read_notebook", "run_notebook", "sources"]

_SHELL = re.compile(r"^(\s*)!(.+)$", re.MULTILINE)


def read_notebook(path: Path) -> dict[str, Any]:
    """Return a notebook as it stands in its file."""
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def sources(notebook: dict[str, Any], kind: str) -> list[str]:
    """Return the text of every cell of one kind, "code" or "markdown"."""
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == kind]


def run_notebook(path: Path) -> None:
    """Run a notebook in its folder, and write it back with what its cells show."""
    notebook = read_notebook(path)
    os.chdir(path.parent)
    space: dict[str, Any] = {"__name__": "__main__", "_shell": _shell}
    number = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        number += 1
        cell["execution_count"] = number
        cell["outputs"] = _outputs("".join(cell["source"]), space, number)
    text = json.dumps(notebook, indent=1, ensure_ascii=False)
    Path(path.name).write_text(f"{text}\n", encoding="utf-8")


def _outputs(source: str, space: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """Run one cell; return what it prints, and its last expression as notebooks show it."""
    code = _SHELL.sub(lambda line: f"{line[1]}_shell({line[2]!r})", source)
    tree = ast.parse(code, f"cell {number}")
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    shown = None
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, f"cell {number}", "exec"), space)  # noqa: S102
        if last is not None:
            assert isinstance(last, ast.Expr)
            shown = eval(  # noqa: S307
                compile(ast.Expression(last.value), f"cell {number}", "eval"), space
            )
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        outputs.append({"name": "stdout", "output_type": "stream", "text": text})
    if shown is not None and not source.rstrip().endswith(";"):
        data = {"text/plain": repr(shown).splitlines(keepends=True)}
        if hasattr(shown, "_repr_html_"):
            data = {"text/html": shown._repr_html_().splitlines(keepends=True), **data}
        outputs.append(
            {
                "data": data,
                "execution_count": number,
                "metadata": {},
                "output_type": "execute_result",
            }
        )
    return outputs


def _shell(command: str) -> None:
    """Run a line of the shell, both streams on one screen; a failure ends the notebook."""
    done = subprocess.run(  # noqa: S602
        command,
        shell=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    print(done.stdout, end="")
    if done.returncode:
        raise RuntimeError(f"{command}: exit code {done.returncode}\n{done.stdout}")


def main(names: list[str]) -> int:
    """Run the notebooks, in turn; return an exit code."""
    start = Path.cwd()
    for name in names:
        try:
            run_notebook(start / name)
        except Exception:
            print(f"{name}:\n{traceback.format_exc()}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
