"""The experiments of SDLDP (Chen, Ye, Zhang and Shu, 2025), redone, beside the theory put right.

Its figures, with the baselines that the paper lacks, and a verdict on each of its claims: what
rests on simulated surveys is judged by intervals over them. Frequencies need only the two
marginals, which stand here; means need the heights and weights of the SOCR growth survey, as a
file.
"""

from dither.examples.paper.all_claims import PaperClaim, claims
from dither.examples.paper.diagrams import PaperDiagram, densities_figure, framework_figure
from dither.examples.paper.figures import PaperCurve, PaperFigure, PaperPanel
from dither.examples.paper.frequencies import adversary_figure, frequency_figures
from dither.examples.paper.kept import KeptSurveys
from dither.examples.paper.numbers import mean_figures, read_survey, variance_figure

__all__ = [
    "KeptSurveys",
    "PaperClaim",
    "PaperCurve",
    "PaperDiagram",
    "PaperFigure",
    "PaperPanel",
    "adversary_figure",
    "claims",
    "densities_figure",
    "framework_figure",
    "frequency_figures",
    "mean_figures",
    "read_survey",
    "variance_figure",
]
