"""Models trained under differential privacy, each charged by one exact loss.

``AdditiveClassifier`` and ``AdditiveRegressor`` are estimators in scikit-learn's manner on numpy
alone. Bounds, classes and categories are arguments: nothing is learned of the data in silence.
"""

from dither.learn._additive import AdditiveClassifier as AdditiveClassifier
from dither.learn._additive import AdditiveRegressor as AdditiveRegressor
from dither.learn._boosting import Boosting

__all__ = ["AdditiveClassifier", "AdditiveRegressor"]

AUDITED = (Boosting,)
"""What ``dither audit --all`` reads beside the list above."""
