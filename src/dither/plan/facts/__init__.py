"""Which values an expression can have, from the public facts alone.

``infer`` walks an expression and gives its kind, its bounds by interval arithmetic, its list of
values where that is short, the lattice its exact values lie on, and whether it can be NULL. It is
also the type checker: what makes no sense is refused here, by name.

All of it holds for values that keep to what is declared of them, and none of it is believed of any
value. Bounds serve twice. They say which results may leave ±2⁶²: arithmetic where that could happen
to a value inside its bounds is refused. And they give the sensitivity of sums, which the engine
makes true by an integer clamp of every value that enters a sum. So a fact that is false of the data
costs accuracy and never privacy.

- ``values``: what is known of an expression, and the limits of what is admitted.
- ``scope``: the columns that expressions over a relation may name.
- ``inference``: ``infer``, which hands each node to its rule.
- ``leaves``, ``numbers``, ``truth``, ``choices``, ``dates``, ``letters``: the rules, one for each
  kind of node; ``common`` is what they share.
"""

from dither.plan.facts.dates import PARTS, TRUNCATIONS
from dither.plan.facts.inference import infer
from dither.plan.facts.scope import Scope
from dither.plan.facts.values import (
    LARGEST_INTEGER,
    LARGEST_REAL,
    LONGEST_LIST,
    Facts,
    listed_values,
)

__all__ = [
    "LARGEST_INTEGER",
    "LARGEST_REAL",
    "LONGEST_LIST",
    "PARTS",
    "TRUNCATIONS",
    "Facts",
    "Scope",
    "infer",
    "listed_values",
]
