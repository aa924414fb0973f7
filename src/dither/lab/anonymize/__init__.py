"""Anonymising tables as people did before differential privacy: measured, fast, and not enough.

- `generalize`: k-anonymity by generalising whole columns, with the least loss there is; `mondrian`:
  by cutting the data into boxes; `recode`: to levels of your choice.
- `l_diversity`, `t_closeness`, `alpha_k`, `delta_disclosure`, `beta_likeness`: what to require of
  every class besides its size.
- `measure`: all of these, and risk and utility, of any table.
- `hierarchy`, `intervals`, `dates`, `prefixes`, `suppression`: what a value may be replaced by.
- `substitute`, `shuffle`, `truncate`, `pseudonymize`, `format_preserving`: masking.

No result carries a guarantee against an attacker who knows more than the quasi-identifiers; each
says so in a line of its own. The lab in `dither.lab.attack` breaks them.
"""

from dither.lab.anonymize.format_preserving import format_preserving
from dither.lab.anonymize.generalizing import generalize
from dither.lab.anonymize.hierarchy import Hierarchy, hierarchy
from dither.lab.anonymize.lattice import Progress
from dither.lab.anonymize.masking import shuffle, substitute, truncate
from dither.lab.anonymize.measures import Measures, Sensitive
from dither.lab.anonymize.measuring import measure
from dither.lab.anonymize.partitioning import mondrian
from dither.lab.anonymize.pseudonyms import new_key, pseudonymize
from dither.lab.anonymize.recoding import recode
from dither.lab.anonymize.requirements import (
    alpha_k,
    beta_likeness,
    delta_disclosure,
    l_diversity,
    t_closeness,
)
from dither.lab.anonymize.result import Anonymized
from dither.lab.anonymize.risk import Attacker, Risk
from dither.lab.anonymize.rules import dates, intervals, prefixes, suppression

__all__ = [
    "Anonymized",
    "Attacker",
    "Hierarchy",
    "Measures",
    "Progress",
    "Risk",
    "Sensitive",
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
