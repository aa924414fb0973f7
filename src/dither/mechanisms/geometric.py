"""The geometric mechanism: the field's other name for the discrete Laplace mechanism.

Two-sided geometric noise, Pr[Z = z] = (1 - r)/(1 + r)·r^|z| with r = exp(-1/scale), is what
``discrete_laplace`` adds: same law, same parameter, same proof. For one count of sensitivity 1 no
epsilon-DP mechanism is more useful, to any Bayesian with a symmetric monotone loss.

Source. Ghosh, Roughgarden and Sundararajan, "Universally utility-maximizing privacy mechanisms",
STOC 2009.

Examples
--------
>>> from fractions import Fraction
>>> Geometric.for_loss(Fraction(1, 2), l1=1)
DiscreteLaplace(scale=Fraction(2, 1))
"""

from __future__ import annotations

from dither.mechanisms.discrete_laplace import DiscreteLaplace

__all__ = ["Geometric"]

Geometric = DiscreteLaplace
"""`DiscreteLaplace`, under the name that statisticians of counts use."""
