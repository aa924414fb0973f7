"""Anonymising tables as people did before differential privacy: measured, fast, and not enough.

- `generalize`: k-anonymity by generalising whole columns, with the least loss there is; `mondrian`:
  by cutting the data into boxes; `recode`: to levels of your choice.
- `l_diversity`, `t_closeness`, `alpha_k`, `delta_disclosure`, `beta_likeness`: what to require of
  every class besides its size.
- `measure`: all of these, and risk and utility, of any table.
- `hierarchy`, `intervals`, `dates`, `prefixes`, `suppression`: what a value may be replaced by.
- `substitute`, `shuffle`, `truncate`, `pseudonymize`, `format_preserving`: masking.

No result carries a guarantee against an attacker who knows more than the quasi-identifiers; each
says so in a line of its own. `dither.lab.attack` breaks them.
"""

from dither.lab.anonymize._format_preserving import format_preserving
from dither.lab.anonymize._generalize import generalize, recode
from dither.lab.anonymize._hierarchy import Hierarchy as Hierarchy
from dither.lab.anonymize._hierarchy import hierarchy
from dither.lab.anonymize._lattice import SearchProgress as SearchProgress
from dither.lab.anonymize._masking import new_key, pseudonymize, shuffle, substitute, truncate
from dither.lab.anonymize._measures import Measures as Measures
from dither.lab.anonymize._measures import Sensitive as Sensitive
from dither.lab.anonymize._measures import measure
from dither.lab.anonymize._mondrian import mondrian
from dither.lab.anonymize._requirements import (
    alpha_k,
    beta_likeness,
    delta_disclosure,
    l_diversity,
    t_closeness,
)
from dither.lab.anonymize._result import Anonymized as Anonymized
from dither.lab.anonymize._risk import Attacker as Attacker
from dither.lab.anonymize._risk import Risk as Risk
from dither.lab.anonymize._rules import dates, intervals, prefixes, suppression

__all__ = [
    "alpha_k",
    "beta_likeness",
    "dates",
    "delta_disclosure",
    "format_preserving",
    "generalize",
    "hierarchy",
    "intervals",
    "l_diversity",
    "measure",
    "mondrian",
    "new_key",
    "prefixes",
    "pseudonymize",
    "recode",
    "shuffle",
    "substitute",
    "suppression",
    "t_closeness",
    "truncate",
]
