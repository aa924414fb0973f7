"""How like a real table a synthetic one is, and how near to its rows.

`compare` reads the real table without noise. Its figures protect nobody: they are for the table's
owner, and are to be kept as the table is.
"""

from dither.lab.compare._compare import compare
from dither.lab.compare._result import Accuracy as Accuracy
from dither.lab.compare._result import Nearness as Nearness
from dither.lab.compare._result import TableComparison as TableComparison

__all__ = ["compare"]
