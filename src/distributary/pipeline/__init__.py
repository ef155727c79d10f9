"""Everything that looks at history, or at everybody at once: jobs on Spark.

Transforms are functions from DataFrame to DataFrame, the same for batch and for streams;
jobs read tables, apply transforms and write tables. Rules are those of `filters`, `content`,
`placement`, `fidelity` and `wiring`: nothing here implements one anew.
"""
