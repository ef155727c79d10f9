"""The formula of a CESQL expression.

An expression is true, false, or has met an error, and as a filter an error is as good as
false. Inside it is not: `NOT` of an error is an error. Every part therefore has two formulas,
for true and for false without an error, and a third that there is no error, which is simpler
than "one of the two" where the whole question is whether an attribute is there.
"""

from __future__ import annotations

from collections.abc import Iterator

from distributary.filters import sql_tree as sql
from distributary.filters.atoms import Outcome, outcome, present
from distributary.filters.evaluation import Errors
from distributary.filters.expression import Expression
from distributary.filters.formula import (
    FALSE,
    TRUE,
    Conjunction,
    Fact,
    Formula,
    complement,
    conjunction,
    disjunction,
)
from distributary.filters.program import compile_tree
from distributary.filters.sql_cases import (
    NEVER,
    Cases,
    constant,
    equality_cases,
    like_cases,
    member_cases,
    order_cases,
    swapped_if,
    truth_cases,
)
from distributary.filters.sql_cost import parts_of
from distributary.filters.sql_functions import Functions
from distributary.filters.sql_tree import SqlNode, Value, ValueType

__all__ = ["always_read", "sql_formula"]

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_BOOLEAN_NODES = (sql.Exists, sql.Not, sql.Comparison, sql.Like, sql.In, sql.Logic)

# What a formula may grow to before a part is taken as it is, unseen.
_DEPTH_MAX = 48
_CLAUSE_PARTS_MAX = 2048


def sql_formula(expression: Expression) -> Formula:
    """Return the formula that holds for a publication exactly when the expression passes."""
    root, functions = expression.root, expression.functions
    if not _names(root):
        return TRUE if expression.passes({}) else FALSE
    if isinstance(root, sql.Attribute):
        # By itself an attribute is not cast: it has to be the Boolean true.
        return Fact(Outcome(root.name, root, functions, True))
    if isinstance(root, _BOOLEAN_NODES):
        return _Reader(functions).cases(root).true
    return _opaque(root, functions, as_condition=False).true


class _Reader:
    """Turns parts of one expression into formulas."""

    def __init__(self, functions: Functions) -> None:
        self._functions = functions

    def cases(self, node: SqlNode) -> Cases:
        """Return when a node is true and false, read as a condition; its depth is limited."""
        if not _names(node):
            return constant(outcome(node, self._functions, {}))
        found = self._known(node)
        if found is None or max(part.depth for part in found) > _DEPTH_MAX:
            return _opaque(node, self._functions, as_condition=True)
        return found

    def _known(self, node: SqlNode) -> Cases | None:
        match node:
            case sql.Exists(name):
                return self._exists(name)
            case sql.Attribute(name):
                return self._guarded(name, truth_cases(name))
            case sql.Not(operand) if isinstance(operand, _BOOLEAN_NODES):
                return self.cases(operand).swapped
            case sql.Comparison(operator, left, right):
                return self._comparison(operator, left, right)
            case sql.Like(sql.Attribute(name), pattern, negated):
                return self._guarded(name, swapped_if(negated, like_cases(name, pattern)))
            case sql.In(sql.Attribute(name), items, negated):
                literals = [self._literal(item) for item in items]
                known = tuple(literal for literal in literals if literal is not None)
                if len(known) < len(literals):
                    return None
                return self._guarded(name, swapped_if(negated, member_cases(name, known)))
            case sql.Logic(operators, operands):
                return self._logic(operators, operands)
            case _:
                return None

    def _exists(self, name: str) -> Cases:
        absent = outcome(sql.Exists(name), self._functions, {})
        there = outcome(sql.Exists(name), self._functions, {name: "a"})
        if absent is there:
            return constant(there)
        fact = Fact(present(name))
        return Cases(fact, complement(fact), TRUE)

    def _guarded(self, name: str, cases: Cases) -> Cases:
        """Return the cases, or none at all for an attribute that CESQL never sees."""
        errors: Errors = []
        compile_tree(sql.Attribute(name), self._functions)({name: "a"}, errors)
        return NEVER if errors else cases

    def _literal(self, node: SqlNode) -> sql.Literal | None:
        """Return the value of a node that is the same for every event and meets no error."""
        if isinstance(node, sql.Literal):
            return node
        if _names(node):
            return None
        errors: Errors = []
        value: Value = compile_tree(node, self._functions)({}, errors)
        return None if errors else sql.Literal(ValueType.of(value), value)

    def _comparison(self, operator: str, left: SqlNode, right: SqlNode) -> Cases | None:
        if isinstance(left, sql.Attribute):
            name, literal = left.name, self._literal(right)
        elif isinstance(right, sql.Attribute):
            name, literal = right.name, self._literal(left)
        else:
            return None
        if literal is None:
            return None
        if operator not in ("=", "!="):
            if not isinstance(left, sql.Attribute):
                operator = _MIRRORED[operator]
            return self._guarded(name, order_cases(name, operator, literal.value))
        if isinstance(left, sql.Attribute):
            found = equality_cases(name, literal)
        else:
            # The right operand decides the type, so the literal is cast to the attribute's.
            found = member_cases(name, (literal,))
        return self._guarded(name, swapped_if(operator == "!=", found))

    def _logic(self, operators: tuple[str, ...], operands: tuple[SqlNode, ...]) -> Cases | None:
        """Return the cases of a chain: runs of one operator, each with what is left of it."""
        found = self.cases(operands[0])
        position = 0
        while position < len(operators):
            operator = operators[position]
            end = position + 1
            while end < len(operators) and operators[end] == operator != "XOR":
                end += 1
            run = [found, *(self.cases(operand) for operand in operands[position + 1 : end + 1])]
            position = end
            if operator == "XOR":
                found = _exclusive(run[0], run[1])
                continue
            chained = _chain(run if operator == "OR" else [part.swapped for part in run])
            if chained is None:
                return None
            found = chained if operator == "OR" else chained.swapped
        return found


def _chain(run: list[Cases]) -> Cases | None:
    """Return the cases of `OR` between the parts, from left to right.

    It ends at the first part that is true. Every part before that must be without an error:
    part `i` is, or an earlier one was true. For `AND`, true and false change places.
    """
    known = _atoms(run[0].defined) or frozenset()
    clauses: list[Formula] = [run[0].defined]
    last: Formula = TRUE
    size = 0
    for index, part in enumerate(run[1:], start=1):
        asked = _atoms(part.defined)
        if asked is not None and asked <= known:
            continue
        size += index
        if size > _CLAUSE_PARTS_MAX:
            return None
        clause = disjunction((*(earlier.true for earlier in run[:index]), part.defined))
        if index == len(run) - 1:
            # Where the last part is true it is without an error, and need not be asked.
            last = clause
        else:
            clauses.append(clause)
    return Cases(
        true=conjunction((*clauses, disjunction(part.true for part in run))),
        false=conjunction(part.false for part in run),
        defined=conjunction((*clauses, last)),
    )


def _exclusive(left: Cases, right: Cases) -> Cases:
    return Cases(
        disjunction((conjunction((left.true, right.false)), conjunction((left.false, right.true)))),
        disjunction((conjunction((left.true, right.true)), conjunction((left.false, right.false)))),
        conjunction((left.defined, right.defined)),
    )


def _atoms(formula: Formula) -> frozenset[object] | None:
    """Return the atoms of a formula that says of some that they hold, and nothing else."""
    facts = formula.parts if isinstance(formula, Conjunction) else (formula,)
    if all(isinstance(fact, Fact) and fact.sign for fact in facts):
        return frozenset(fact.atom for fact in facts if isinstance(fact, Fact))
    return None


def _opaque(node: SqlNode, functions: Functions, *, as_condition: bool) -> Cases:
    """Return the cases of a part that is taken as it is."""
    names = _names(node)
    condition: SqlNode = node
    if as_condition and not isinstance(node, _BOOLEAN_NODES):
        condition = sql.Logic(("AND",), (sql.Literal(ValueType.BOOLEAN, True), node))
    key = next(iter(names)) if len(names) == 1 else ""
    true = Fact(Outcome(key, condition, functions, True))
    false = Fact(Outcome(key, condition, functions, False))
    there = [] if key else [Fact(present(name)) for name in sorted(set(always_read(node)))]
    return Cases(
        conjunction((*there, true)),
        conjunction((*there, false)),
        conjunction((*there, disjunction((true, false)))),
    )


def _names(node: SqlNode) -> frozenset[str]:
    """Return the attributes that a node mentions."""
    found: set[str] = set()
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, sql.Attribute | sql.Exists):
            found.add(part.name)
        waiting.extend(parts_of(part))
    return frozenset(found)


def always_read(node: SqlNode) -> Iterator[str]:
    """Yield the attributes that are read whatever the event has; without them it is an error."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, sql.Attribute):
            yield part.name
        waiting.extend(part.operands[:1] if isinstance(part, sql.Logic) else parts_of(part))
