"""Filters: the subscription language and the matching index.

`Filter.parse` compiles the filters of a subscription, `Index` finds the subscriptions that an
event concerns, and `evaluate` says what a single CESQL expression makes of an event.
"""

from distributary.filters.cells import cells, cells_batch
from distributary.filters.covers import covers
from distributary.filters.evaluation import ErrorKind, Evaluation, EvaluationError
from distributary.filters.expression import Expression, evaluate, parse_expression
from distributary.filters.filter import Filter
from distributary.filters.index import Index
from distributary.filters.sql_built_ins import BUILT_INS
from distributary.filters.sql_functions import Function, FunctionFailed, Functions
from distributary.filters.sql_tree import ValueType

__all__ = [
    "BUILT_INS",
    "ErrorKind",
    "Evaluation",
    "EvaluationError",
    "Expression",
    "Filter",
    "Function",
    "FunctionFailed",
    "Functions",
    "Index",
    "ValueType",
    "cells",
    "cells_batch",
    "covers",
    "evaluate",
    "parse_expression",
]
