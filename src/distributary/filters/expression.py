"""CESQL expressions: parsed once, with the fault's position, and evaluated on many events.

>>> evaluate("subject LIKE 'city/%' AND level > 2", {"subject": "city/7", "level": 3}).value
True
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from distributary.arguments import checked
from distributary.errors import BadInput
from distributary.filters.evaluation import (
    ErrorKind,
    Errors,
    Evaluation,
    EvaluationError,
    Evaluator,
)
from distributary.filters.program import compile_tree
from distributary.filters.sql_built_ins import BUILT_INS
from distributary.filters.sql_cost import check_passes, text_passes
from distributary.filters.sql_functions import Functions
from distributary.filters.sql_parser import parse_tree
from distributary.filters.sql_tree import SqlNode

__all__ = ["Expression", "evaluate", "parse_expression"]


class Expression:
    """A CESQL expression, as written and as a tree, with the functions that it can call.

    Nothing about it can fail once it is made. Two expressions are equal when they have the
    same tree and the same functions.
    """

    def __init__(self, text: str, root: SqlNode, functions: Functions) -> None:
        self.text = text
        self.root = root
        self.functions = functions

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Expression):
            return NotImplemented
        return self.functions is other.functions and self.root == other.root

    def __hash__(self) -> int:
        return hash(self.root)

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"

    def __getstate__(self) -> dict[str, object]:
        # What was compiled is made of closures, which stay in this process.
        return {name: value for name, value in self.__dict__.items() if name != "_evaluator"}

    @cached_property
    def _evaluator(self) -> Evaluator:
        # Compiled on first use: most expressions of an index are never evaluated.
        return compile_tree(self.root, self.functions)

    @cached_property
    def text_passes(self) -> int:
        """How often an evaluation may go through a whole text."""
        return text_passes(self.root)

    def evaluate(self, attributes: Mapping[str, object]) -> Evaluation:
        """Return the value for an event with those attributes, and the errors met.

        None stands for an attribute that is not there; a value that is no String, Integer or
        Boolean is seen as a String.
        """
        errors: Errors = []
        value = self._evaluator(attributes, errors)
        return Evaluation(value, tuple(dict.fromkeys(errors)) if errors else ())

    def passes(self, attributes: Mapping[str, object]) -> bool:
        """Tell whether an event passes: the value is true, and there is no error."""
        errors: Errors = []
        return self._evaluator(attributes, errors) is True and not errors


@checked
def parse_expression(text: str, *, functions: Functions = BUILT_INS) -> Expression:
    """Return the expression that `text` writes.

    A call of a function that is not there is no fault of the text: it is an error of every
    evaluation that reaches it, as the specification has it.

    Raises `BadInput`, whose place names the character, where the text breaks the grammar or a
    limit.
    """
    expression = Expression(text, parse_tree(text), functions)
    check_passes(expression.text_passes, "expression")
    return expression


@checked
def evaluate(
    expression: str, event: Mapping[str, object], *, functions: Functions = BUILT_INS
) -> Evaluation:
    """Return the value of the expression for the event, and the errors met.

    Nothing is raised: a malformed expression has the value false, and a parse error. To
    evaluate one expression on many events, parse it once with `parse_expression`. `event` has
    the attributes by name, as in the JSON format of CloudEvents; its `data` is not seen.
    """
    try:
        parsed = parse_expression(expression, functions=functions)
    except BadInput as problem:
        return Evaluation(False, (EvaluationError(ErrorKind.PARSE, str(problem)),))
    return parsed.evaluate(event)
