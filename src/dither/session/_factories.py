"""Every kind of question, by the name under which a session or a table's rows are asked for it.

A package knows nothing of those above it. So a session does not import what questions are made of,
nor do rows import the packages that make models and synthetic tables of them: what they are asked
for stands here, and loads when somebody asks.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["FACTORIES", "INFERENCE", "factory"]

FACTORIES = {
    "query": "dither.query._question:Question",
    "rows": "dither.query._builder:TableQuery",
    "fact": "dither.query.learning._learn:asked_fact",
    "infer": "dither.inference.tables._table:Inference",
    "learn": "dither.learn.tables._table:Learning",
    "compare": "dither.synth.tables._comparison:compared",
    "hierarchy": "dither.synth.tables._hierarchy:asked_hierarchy",
    "marginals": "dither.synth.tables._marginals:marginals",
    "ranges": "dither.synth.tables._ranges:asked_ranges",
    "linked": "dither.synth.tables._linked:LinkedSynthesis",
    "synthesis": "dither.synth.tables._synthesis:Synthesis",
}
"""By name: the module, and what in it makes the question."""

INFERENCE = (
    "mean",
    "proportion",
    "median",
    "quantile",
    "quantiles",
    "difference",
    "test_independence",
    "goodness_of_fit",
    "regression",
    "logistic_regression",
    "kaplan_meier",
    "logrank_test",
    "rate",
    "rate_ratio",
    "standardised_rate",
    "standardised_ratio",
    "mantel_haenszel",
    "describe",
    "f_oneway",
    "weighted_mean",
    "weighted_proportion",
    "weighted_total",
)
"""The methods of what ``infer`` makes that others may name, in the order in which pages list them.
"""

PARTS = {
    "answer": "dither.query._release:Release",
    "aggregate": "dither.query._aggregates:said_again",
    "bins": "dither.query._aggregates:bins",
    "learned": "dither.query.learning._learn:learn",
    "dummy": "dither.session.dummies._rehearsal:dummy",
    "dummies": "dither.session.dummies._rehearsal:dummies",
    "rehearsal": "dither.session.dummies._rehearsal:rehearsal",
}
"""The same of what stands in a question, is made of its answer, or goes before it."""


def factory(name: str) -> Any:
    """What makes the questions of a kind.

    Examples
    --------
    >>> factory("query").__name__
    'Question'
    """
    module, _, made = (FACTORIES | PARTS)[name].partition(":")
    return getattr(import_module(module), made)
