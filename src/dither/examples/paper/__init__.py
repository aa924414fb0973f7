"""The experiments of SDLDP (Chen, Ye, Zhang and Shu, 2025), redone, beside the theory put right.

Figures 2 and 4 to 9, with the baselines that the paper lacks, and a verdict on each of its claims.
Frequencies need only the two marginals, which stand here; means need the heights and weights of the
SOCR growth survey, as a file.
"""

from dither.examples.paper.claims import PaperClaim, claims
from dither.examples.paper.figures import PaperCurve, PaperFigure, PaperPanel
from dither.examples.paper.frequencies import adversary_figure, frequency_figures
from dither.examples.paper.numbers import mean_figures, read_survey, variance_figure

__all__ = [
    "PaperClaim",
    "PaperCurve",
    "PaperFigure",
    "PaperPanel",
    "adversary_figure",
    "claims",
    "frequency_figures",
    "mean_figures",
    "read_survey",
    "variance_figure",
]
