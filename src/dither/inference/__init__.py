"""Estimates, intervals and tests that count both sources of error: who was sampled, and the noise.

``inference.mean(x, bounds=(0, 9), epsilon=1).interval(0.95)`` is an interval for the mean of the
people that the rows were sampled from, not of the rows. Each function has three layers, and each
number comes from one simulator.

1. *Release* touches the data, once: exact statistics of known sensitivity leave with the exact
   noise of `dither.mechanisms`, and cost the `dither.privacy.Loss` that the result carries.
2. *Model* simulates the whole mechanism, sampling, clamping and noise, from a parameter.
3. *Infer* finds the parameter whose expectation was released, and how far it may be off.

Standard errors, intervals at any confidence and p-values then are post-processing and cost nothing.

The three layers stand in ``engine``; ``estimates``, ``hypothesis``, ``regression``, ``survival``
and ``rates`` hold what is asked, ``planning`` what is asked before, and ``tables`` the same
questions of a session's table.
"""

from dither._extras import refused_without
from dither.inference.engine._ball import BallRelease
from dither.inference.engine._group_sums import GroupSumsRelease
from dither.inference.engine._result import PrivateEstimate as PrivateEstimate
from dither.inference.engine._result import PrivateResult as PrivateResult
from dither.inference.engine._result import PrivateTest as PrivateTest
from dither.inference.engine._signs import SquareRelease
from dither.inference.engine._statistic import StatisticRelease, StatisticWithRowsRelease
from dither.inference.estimates._covariance import CovarianceEstimate as CovarianceEstimate
from dither.inference.estimates._covariance import CovarianceRelease, covariance
from dither.inference.estimates._difference import DifferenceRelease, difference
from dither.inference.estimates._ecdf import DistributionTest as DistributionTest
from dither.inference.estimates._ecdf import TreeRelease
from dither.inference.estimates._mean import mean
from dither.inference.estimates._means import BoxRelease, means
from dither.inference.estimates._normal_mean import MeanRelease
from dither.inference.estimates._printed import truncated_mean_as_printed
from dither.inference.estimates._proportion import CanonicalNoise, proportion
from dither.inference.estimates._quantiles import BinsRelease, quantiles
from dither.inference.estimates._sparse import SparseEstimate as SparseEstimate
from dither.inference.estimates._sparse import SparseRelease, sparse_mean
from dither.inference.estimates._two_proportions import CellsRelease, odds_ratio, two_proportions
from dither.inference.estimates._weighted import (
    WeightedRelease,
    weighted_mean,
    weighted_proportion,
    weighted_total,
)
from dither.inference.hypothesis._anova import f_oneway
from dither.inference.hypothesis._clamped_sums import ContrastRelease
from dither.inference.hypothesis._concordance import ConcordanceRelease, kendalltau
from dither.inference.hypothesis._contingency import (
    TableRelease,
    goodness_of_fit,
    independence_test,
)
from dither.inference.hypothesis._efficient import EfficientRelease
from dither.inference.hypothesis._identity import identity_test, uniformity_test
from dither.inference.hypothesis._kolmogorov import ks_1samp, ks_2samp
from dither.inference.hypothesis._one_sample import sign_test, wilcoxon
from dither.inference.hypothesis._pearson import CorrelationTest as CorrelationTest
from dither.inference.hypothesis._pearson import pearsonr
from dither.inference.hypothesis._ranks import GroupRanks, kruskal, mannwhitneyu
from dither.inference.hypothesis._t_tests import ttest_1samp, ttest_ind, ttest_rel, ztest
from dither.inference.hypothesis._test_of_tests import RejectionsRelease, test_of_tests
from dither.inference.hypothesis._ties import TiesRelease
from dither.inference.paper._adjusted import AdjustedTests as AdjustedTests
from dither.inference.paper._adjusted import adjust_pvalues
from dither.inference.paper._describe import describe
from dither.inference.paper._described import PrivateDescription as PrivateDescription
from dither.inference.paper._forest import forest_plot
from dither.inference.paper._release import DescriptionRelease
from dither.inference.planning._compare import Comparison as Comparison
from dither.inference.planning._compare import compare
from dither.inference.planning._cost import CostOfPrivacy as CostOfPrivacy
from dither.inference.planning._cost import cost_of_privacy
from dither.inference.planning._radius import ClampingRadius as ClampingRadius
from dither.inference.planning._radius import clamping_radius
from dither.inference.planning._sizes import samples_needed
from dither.inference.rates._mantel_haenszel import mantel_haenszel
from dither.inference.rates._rates import RateEstimate as RateEstimate
from dither.inference.rates._rates import (
    rate,
    rate_ratio,
    standardised_rate,
    standardised_ratio,
)
from dither.inference.rates._sums import RatesRelease
from dither.inference.regression._boosted import BoostedRelease
from dither.inference.regression._coefficients import RegressionEstimate as RegressionEstimate
from dither.inference.regression._descent import DescentRelease
from dither.inference.regression._linear_regression import linear_regression
from dither.inference.regression._logistic import LogisticEstimate as LogisticEstimate
from dither.inference.regression._logistic import logistic_regression
from dither.inference.regression._moments import MomentsRelease
from dither.inference.regression._objective import ObjectiveRelease
from dither.inference.survival._counts import SurvivalRelease
from dither.inference.survival._curves import SurvivalEstimate as SurvivalEstimate
from dither.inference.survival._survival import kaplan_meier, logrank_test

__all__ = [
    "adjust_pvalues",
    "clamping_radius",
    "compare",
    "cost_of_privacy",
    "covariance",
    "describe",
    "difference",
    "f_oneway",
    "forest_plot",
    "goodness_of_fit",
    "identity_test",
    "independence_test",
    "kaplan_meier",
    "kendalltau",
    "kruskal",
    "ks_1samp",
    "ks_2samp",
    "linear_regression",
    "logistic_regression",
    "logrank_test",
    "mannwhitneyu",
    "mantel_haenszel",
    "mean",
    "means",
    "odds_ratio",
    "pearsonr",
    "proportion",
    "quantiles",
    "rate",
    "rate_ratio",
    "samples_needed",
    "sign_test",
    "sparse_mean",
    "standardised_rate",
    "standardised_ratio",
    "test_of_tests",
    "truncated_mean_as_printed",
    "ttest_1samp",
    "ttest_ind",
    "ttest_rel",
    "two_proportions",
    "uniformity_test",
    "weighted_mean",
    "weighted_proportion",
    "weighted_total",
    "wilcoxon",
    "ztest",
]

AUDITED = (
    BallRelease,
    BinsRelease,
    BoostedRelease,
    BoxRelease,
    CanonicalNoise,
    CellsRelease,
    ConcordanceRelease,
    ContrastRelease,
    CovarianceRelease,
    DescentRelease,
    DescriptionRelease,
    DifferenceRelease,
    EfficientRelease,
    GroupRanks,
    GroupSumsRelease,
    MeanRelease,
    MomentsRelease,
    ObjectiveRelease,
    RatesRelease,
    RejectionsRelease,
    SparseRelease,
    SquareRelease,
    StatisticRelease,
    StatisticWithRowsRelease,
    SurvivalRelease,
    TableRelease,
    TiesRelease,
    TreeRelease,
    WeightedRelease,
)
"""What touches data here, each with the neighbours that an audit calls it on."""

# Without SciPy each says which extra brings it, before anything is drawn.
globals().update(refused_without("scipy", "inference", {name: globals()[name] for name in __all__}))
