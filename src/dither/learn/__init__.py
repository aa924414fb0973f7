"""Models trained under differential privacy, each charged by one exact loss.

Estimators in scikit-learn's manner on numpy alone; of them ``AdditiveClassifier`` and
``AdditiveRegressor`` are those to try first. Bounds, classes and categories are arguments: nothing
is learned of the data in silence. ``Votes`` and ``SampleAndAggregate`` answer with models that are
never published, and ``search`` chooses hyper-parameters.
``train`` and ``PrivateOptimizer`` train models of torch by private gradients; they, and `deep` with
what they take, are imported when they are first used, and need ``pip install 'dither[learn]'``.
``session.table("visits").learn(epsilon=1)`` asks for a model through engine and ledger; ``load``
reads what its ``save`` wrote.

Models of columns stand in ``tabular``, predictions without a model in ``votes``, searches in
``tuning``, sums of several parties in ``secure`` and ``federated``, and what a session's table is
asked for in ``tables``.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from dither.learn.federated._noise import DistributedNoise
from dither.learn.secure._private_sum import PrivateSum as PrivateSum
from dither.learn.secure._private_sum import private_sum
from dither.learn.secure._secure_sum import secure_sum
from dither.learn.secure._shared_sum import shared_sum
from dither.learn.tabular._additive import AdditiveClassifier as AdditiveClassifier
from dither.learn.tabular._additive import AdditiveRegressor as AdditiveRegressor
from dither.learn.tabular._bayes import ClassSums
from dither.learn.tabular._bayes import GaussianNB as GaussianNB
from dither.learn.tabular._boosting import Boosting
from dither.learn.tabular._kmeans import Clusters
from dither.learn.tabular._kmeans import KMeans as KMeans
from dither.learn.tabular._linear import LinearRegression as LinearRegression
from dither.learn.tabular._logistic import LogisticRegression as LogisticRegression
from dither.learn.tabular._pca import PCA as PCA
from dither.learn.tabular._pca import AxesRun
from dither.learn.tabular.trees._forest import RandomForestClassifier as RandomForestClassifier
from dither.learn.tabular.trees._forest import RandomForestRegressor as RandomForestRegressor
from dither.learn.tabular.trees._trees import Trees
from dither.learn.tuning._plan import Search
from dither.learn.tuning._search import SearchResult as SearchResult
from dither.learn.tuning._search import search
from dither.learn.votes._aggregate import Aggregated as Aggregated
from dither.learn.votes._aggregate import SampleAndAggregate
from dither.learn.votes._ballot import TeacherVote
from dither.learn.votes._data_dependent import PrivateCost as PrivateCost
from dither.learn.votes._data_dependent import PublishedCost as PublishedCost
from dither.learn.votes._preview import VotesPreview as VotesPreview
from dither.learn.votes._votes import Votes

if TYPE_CHECKING:
    from dither.learn.deep import PrivateOptimizer, train
    from dither.learn.tables._model import LearnedModel as LearnedModel
    from dither.learn.tables._table import load

__all__ = [
    "PCA",
    "AdditiveClassifier",
    "AdditiveRegressor",
    "GaussianNB",
    "KMeans",
    "LinearRegression",
    "LogisticRegression",
    "PrivateOptimizer",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "SampleAndAggregate",
    "Votes",
    "load",
    "private_sum",
    "search",
    "secure_sum",
    "shared_sum",
    "train",
]

AUDITED = (
    AxesRun,
    TeacherVote,
    Boosting,
    DistributedNoise,
    PrivateSum,
    ClassSums,
    Clusters,
    Search,
    Trees,
    "dither.learn.deep._centre:RowsMean",
    "dither.learn.deep.noise._noise:GradientStep",
)
"""What ``dither audit --all`` reads beside the list above; a text names what needs a library."""

_LATER = {
    "LearnedModel": "dither.learn.tables._model",
    "PrivateOptimizer": "dither.learn.deep",
    "deep": "",
    "load": "dither.learn.tables._table",
    "train": "dither.learn.deep",
}
"""What needs a library of its own, and the packages that import it; a package stands for itself."""


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module 'dither.learn' has no attribute {name!r}")
    home = _LATER[name]
    found = getattr(import_module(home), name) if home else import_module(f"dither.learn.{name}")
    globals()[name] = found
    return found
