"""Predictions without a model to publish: noisy votes of teachers, each trained on its own rows."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._checks import Number
from dither._format import cost_text, count_text
from dither.errors import ArgumentError
from dither.learn._columns import places_in
from dither.learn._conventions import no_weights
from dither.learn._estimator import Estimator
from dither.learn._spending import Spending
from dither.learn.tabular._additive import distinct
from dither.learn.votes._ballot import METHODS, PollPlan, plan_of
from dither.learn.votes._data_dependent import PrivateCost
from dither.learn.votes._partition import apart, each_anew, how_many, parts_of, rows_at
from dither.learn.votes._preview import VotesPreview
from dither.learn.votes._teachers import Poll, as_table, key_of, maker_of, tallied, trained, voted
from dither.mechanisms.selection._selection import Selection
from dither.privacy import Neighbours
from dither.privacy._promise import as_table_neighbours

if TYPE_CHECKING:
    from dither.ledger import Ledger

__all__ = ["Votes"]

Integers = npt.NDArray[np.int64]


class Votes(Estimator):
    """Labels by the noisy votes of teachers: private predictions, from any kind of model.

    The rows are dealt out to teachers at random; each is an ordinary model, trained on its own rows
    without any protection and never published. A question is put to all of them, and the label
    with most votes, counted with noise, is the answer. What is limited is the number of answers.

    Parameters
    ----------
    estimator : object or callable, optional
        What a teacher is: a model with ``fit`` and ``predict``, copied for each, or a function that
        makes one. Left out where teachers are given (`with_teachers`), or votes (`answer_votes`).
    epsilon, delta : number
        What all answers together cost. delta may be 0 for the methods that are not Gaussian.
    classes : sequence
        The labels that are possible, two at least.
    teachers : int
        How many, at least 3. More hear fewer rows each, and drown more noise.
    answers : int
        How many questions may be answered in all.
    queries : int, optional
        How many may be asked where a question may be refused; twice the answers where left out.
    method : str
        ``"confident"``: a question is answered only if so many teachers agree that the noise does
        not matter, else it is refused, at a small cost. Or ``"gaussian"``, ``"permute-and-flip"``,
        ``"exponential"``, ``"laplace"``: always answered.
    threshold : int, optional
        Of the confident method: so many votes must agree; six in ten where left out.
    share : number
        Of the confident method: the part of the cost that checks of the threshold have; in (0, 1).
    default : object, optional
        One of the classes, for which a teacher's vote counts where it gives no declared class, or
        fails. Left out, such a vote does not count.
    neighbours : Neighbours or str
        ``"add-remove"`` or ``"replace"``; the cost is the same.

    Attributes
    ----------
    loss_ : Loss
        What all answers together cost, whether they are asked for or not.
    answers_left, queries_left : int

    Raises
    ------
    ArgumentError
        By `preview` and whatever begins to spend, before any row is read: a parameter is out of
        range.

    Notes
    -----
    *Guarantee.* Everything that `predict` ever returns, whatever is asked and however that depends
    on earlier answers, is (epsilon, delta)-DP for one row, or for all rows of one group. *Proof.* A
    row changes one teacher (`dither.learn.votes._partition`), and so one vote of each question;
    then see `TeacherVote` and `PollPlan`. Not covered: which teacher a question is slow for, and
    the questions themselves, which no noise protects.

    A question that was asked before, digit by digit, gets the answer that it got, for nothing.

    The data-dependent cost of the same answers may be far smaller. It is itself private:
    `data_dependent`.

    References
    ----------
    Papernot, Abadi, Erlingsson, Goodfellow and Talwar, "Semi-supervised knowledge transfer for deep
    learning from private training data", ICLR 2017; Papernot and others, "Scalable private learning
    with PATE", ICLR 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import learn
    >>> class Mean:
    ...     def fit(self, X, y):
    ...         self.cut = X.mean()
    ...     def predict(self, X):
    ...         return (X[:, 0] > self.cut).astype(int)
    >>> X = np.arange(20_000)[:, None] % 100
    >>> votes = learn.Votes(Mean, epsilon=2, delta=1e-6, classes=[0, 1], teachers=200, answers=10)
    >>> votes.fit(X, X[:, 0] >= 50).predict([[3], [97]]).tolist()
    [0, 1]
    >>> votes.answers_left
    8
    """

    kind = "classifier"

    def __init__(
        self,
        estimator: Any = None,
        *,
        epsilon: Number,
        delta: Number = 0,
        classes: Sequence[Any],
        teachers: int = 100,
        answers: int = 100,
        queries: int | None = None,
        method: str = "confident",
        threshold: int | None = None,
        share: Number = Fraction(1, 4),
        default: Any = None,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    ) -> None:
        self.estimator, self.epsilon, self.delta, self.classes = estimator, epsilon, delta, classes
        self.teachers, self.answers, self.queries = teachers, answers, queries
        self.method, self.threshold, self.share = method, threshold, share
        self.default, self.neighbours = default, neighbours

    def preview(self) -> VotesPreview:
        """What to expect, before any row is read or anything is spent.

        Returns
        -------
        VotesPreview
            Print it, or ask it ``expected_answers(agreement)``.
        """
        plan, classes = self._plan(), distinct(self.classes)
        return VotesPreview(
            plan.ballot,
            self.teachers,
            len(classes),
            plan.answers,
            plan.queries,
            plan.epsilon,
            plan.delta,
        )

    def charge_to(
        self,
        ledger: Ledger,
        accounts: str | Sequence[str],
        *,
        unit: str,
        token: str | None = None,
        tables: Mapping[str, str] | None = None,
        reserve: bool = True,
    ) -> Self:
        """Charge an account of a ledger.

        Parameters
        ----------
        ledger : Ledger
        accounts : str or sequence of str
        unit : str
            Whom the account protects: whose row, or group of rows, it is.
        token : str, optional
            A name for these votes. Where answers are charged one by one, they are kept in the
            ledger under it, and the same question to the same teachers is free ever after.
        tables : mapping of str to str, optional
            As of ``Ledger.charge``.
        reserve : bool
            Charge all answers together when the teachers are there, by the composed loss; or else
            each check and each answer by itself, before it leaves. The sum of those is larger, but
            what is not asked is not charged.

        Returns
        -------
        Votes
            This one. A clone charges nobody, until it is told to.

        Raises
        ------
        ArgumentError
            The ledger is not a Ledger, or teachers are there already.
        """
        if hasattr(self, "_poll"):
            raise ArgumentError("charge_to must be called before the teachers are there")
        named = {} if token is None else {"token": token}
        self._spending = Spending(ledger, accounts, unit, tables=dict(tables or {}), **named)
        self._reserve = check.flag("reserve", reserve)
        return self

    def fit(self, X: Any, y: Any, sample_weight: None = None, *, groups: Any = None) -> Self:
        """Deal the rows out, and train a teacher on each part; costs what all answers cost.

        Parameters
        ----------
        X : array or data frame, shape (n, d)
        y : array, shape (n,)
        sample_weight : None
            Not taken: a row counts once.
        groups : array, shape (n,), optional
            Whose each row is, where a person has several: they go to one teacher.

        Returns
        -------
        Votes
            This one.

        Raises
        ------
        BudgetError, PromiseError
            The ledger refuses; no row was read.
        """
        no_weights(sample_weight)
        made, X = maker_of(self.estimator), as_table(X)
        if how_many(X) != how_many(y, "y"):
            raise ArgumentError("y must have one value for each row of X")
        poll = self._opened()
        parts = parts_of(how_many(X), self.teachers, groups)
        y = y if hasattr(y, "shape") else list(y)
        teachers = []
        with each_anew() as anew:
            for k in range(self.teachers):
                mine = np.flatnonzero(parts == k)
                anew()
                teachers.append(trained(made, rows_at(X, mine), rows_at(y, mine)))
        return self._begin(poll, teachers)

    def try_on(self, X: Any, y: Any) -> float:
        """Train one teacher on *public* or made-up rows, to see that it works.

        Parameters
        ----------
        X, y
            As of `fit`. What is wrong is said in full, so never try private rows.

        Returns
        -------
        float
            The share of these rows on which it gives their label.

        Raises
        ------
        ArgumentError
            It predicts what is not a declared class, or not one label a row. What it raises is
            raised.
        """
        teacher, labels = maker_of(self.estimator)(), distinct(self.classes)
        teacher.fit(X, y)
        found = places_in(labels, np.asarray(teacher.predict(X)).reshape(-1))
        if len(found) != how_many(X):
            raise ArgumentError("estimator must predict one label for each row")
        if (found == len(labels)).any():
            raise ArgumentError("estimator must predict declared classes alone; see classes")
        return float((found == places_in(labels, y)).mean())

    def with_teachers(self, teachers: Sequence[Any]) -> Self:
        """Take models that are trained already.

        Parameters
        ----------
        teachers : sequence
            Fitted models with ``predict``, each on rows of its own: that nobody's rows were seen by
            two of them is the caller's to know, and part of what is promised.

        Returns
        -------
        Votes
            This one.
        """
        listed = check.listed("teachers", teachers, "fitted models")
        if len(listed) != self.teachers:
            raise ArgumentError(
                f"teachers must be as many as announced: {self.teachers:,}, not {len(listed):,}"
            )
        return self._begin(self._opened(), listed)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Ask the teachers about each row; each that is answered, or refused, is spent.

        Parameters
        ----------
        X : array or data frame, shape (n, d)

        Returns
        -------
        array, shape (n,)
            Labels; None where the question is refused.

        Raises
        ------
        BudgetError
            No answers or no questions are left, in all or in the ledger. What was answered until
            then is known: asking for those rows again is free.
        """
        self._check_fitted()
        if not self._teachers:
            raise ArgumentError("there are no teachers to ask: give their votes to answer_votes")
        X = as_table(X)
        rows = how_many(X)
        keys = [key_of(rows_at(X, np.array([i]))) for i in range(rows)]
        new = np.array([i for i in range(rows) if not self._poll.knows(keys[i])], dtype=np.int64)
        counts = dict(zip(new.tolist(), self._counted(X, new), strict=True))
        return self._answered(keys, counts)

    def answer_votes(self, votes: Any) -> npt.NDArray[Any]:
        """Answer questions whose votes were collected elsewhere.

        Parameters
        ----------
        votes : array, shape (n, teachers)
            Of each question the label that each teacher votes for; what is not a declared class
            counts for the default, or not at all.

        Returns
        -------
        array, shape (n,)
            As of `predict`. Nothing is free here: who votes may be asked twice.
        """
        if not hasattr(self, "_poll"):
            self._begin(self._opened(), [])
        try:
            table = [list(row) for row in (votes.tolist() if hasattr(votes, "tolist") else votes)]
        except TypeError:
            table = []
        if not table or any(len(row) != self.teachers for row in table):
            raise ArgumentError(
                f"votes must be a table of {self.teachers:,} labels for each question"
            )
        places = [places_in(self._labels, np.fromiter(row, object, len(row))) for row in table]
        counts = dict(enumerate(self._tally(np.stack(places, axis=1))))
        # A name that no other question has, here or in a ledger.
        return self._answered([secrets.token_hex(16) for _ in table], counts)

    @property
    def answers_left(self) -> int:
        """How many questions may still be answered."""
        self._check_fitted()
        return self._poll.plan.answers - self._poll.answered

    @property
    def queries_left(self) -> int:
        """How many questions may still be asked."""
        self._check_fitted()
        return self._poll.plan.queries - self._poll.asked

    def data_dependent(self) -> PrivateCost:
        """What the answers so far cost on these very votes: **a private number**, for the keeper.

        Returns
        -------
        PrivateCost
            Never to be published as it is, and never charged in place of `loss_`.

        Raises
        ------
        ArgumentError
            The answers were not made with Gaussian noise: for others no such bound is known here.
        """
        self._check_fitted()
        plan = self._poll.plan
        if isinstance(plan.ballot.answer, Selection):
            raise ArgumentError("data_dependent needs method='confident' or method='gaussian'")
        return PrivateCost(
            plan.ballot,
            self.teachers,
            len(self._labels),
            tuple(self._poll.margins),
            self._poll.asked,
            self.neighbours_,
            getattr(self, "_spending", None),
        )

    def summary(self) -> str:
        """What was asked, what is left and whom it protects.

        Returns
        -------
        str
        """
        self._check_fitted()
        plan = self._poll.plan
        how = {
            Neighbours.ADD_REMOVE: "added or removed",
            Neighbours.REPLACE: "replaced by another",
        }[self.neighbours_]
        lines = [
            f"votes of {count_text(self.teachers, 'teacher')} on {len(self._labels)} labels, "
            f"{self.method}",
            f"cost: {cost_text(plan.epsilon, plan.delta)} for all answers together; protects one "
            f"row (or group), {how}",
            f"{count_text(self._poll.answered, 'answer')} given, {self.answers_left:,} left",
        ]
        if plan.ballot.check is not None:
            refused = self._poll.asked - self._poll.answered
            lines[-1] += f"; {refused:,} refused, {self.queries_left:,} questions left"
        lines.append("The answers may be published. The teachers and their votes may not.")
        return "\n".join(lines)

    def _plan(self) -> PollPlan:
        classes = distinct(self.classes)
        teachers = check.whole(
            "teachers",
            self.teachers,
            3,
            most=100_000,
            instead=": each is a model of its own",
        )
        answers = check.whole("answers", self.answers, 1, most=1_000_000)
        check.choice("method", self.method, METHODS)
        confident = self.method == "confident"
        if not confident and (self.queries is not None or self.threshold is not None):
            raise ArgumentError("queries and threshold are of method='confident' alone")
        queries = 2 * answers if self.queries is None else self.queries
        threshold = -(-6 * teachers // 10) if self.threshold is None else self.threshold
        if self.default is not None and places_in(classes, [self.default])[0] == len(classes):
            raise ArgumentError("default must be one of the classes")
        return plan_of(
            self.method,
            check.positive("epsilon", self.epsilon),
            check.exact("delta", self.delta, least=0, below=1),
            answers,
            check.whole("queries", queries, answers, most=10_000_000) if confident else answers,
            check.whole("threshold", threshold, 1, most=teachers, instead=", the teachers"),
            check.exact("share", self.share, above=0, below=1),
        )

    def _opened(self) -> Poll:
        """Read the parameters, and charge what is reserved."""
        plan, relation = self._plan(), as_table_neighbours(self.neighbours)
        spending: Spending | None = getattr(self, "_spending", None)
        reserved = getattr(self, "_reserve", True)
        if spending is not None and reserved:
            said = ("reserved", tuple(plan.ballot.parameters().items()), plan.answers, plan.queries)
            spending.once(plan.loss(relation), "votes", *said)
        return Poll(plan, relation, None if reserved else spending)

    def _begin(self, poll: Poll, teachers: list[Any]) -> Self:
        self._labels = distinct(self.classes)
        alike = len({type(label) for label in self._labels}) == 1
        self.classes_ = np.array(self._labels, dtype=None if alike else object)
        self.neighbours_ = as_table_neighbours(self.neighbours)
        self._poll, self._teachers = poll, teachers
        self._keep_loss(poll.plan.loss(self.neighbours_))
        return self

    def _counted(self, X: Any, places: Integers) -> list[list[int]]:
        """Of each question how many teachers vote for each label. Private."""
        if not len(places):
            return []
        rows, votes = rows_at(X, places), []
        with each_anew() as anew:
            for teacher in self._teachers:
                anew()
                # A teacher that scales its questions in place must not do so to the next one's.
                own = apart(rows, len(places))
                votes.append(voted(teacher, own, len(places), self._labels))
        return self._tally(np.stack(votes))

    def _tally(self, votes: Integers) -> list[list[int]]:
        default = None if self.default is None else int(places_in(self._labels, [self.default])[0])
        return tallied(votes, len(self._labels), default)

    def _answered(self, keys: list[str], counts: dict[int, list[int]]) -> npt.NDArray[Any]:
        found: list[Any] = []
        for i, key in enumerate(keys):
            place = self._poll.ask(key, counts.get(i))
            found.append(None if place is None else self._labels[place])
        if any(label is None for label in found):
            return np.fromiter(found, dtype=object, count=len(found))
        made = np.empty(len(found), self.classes_.dtype)
        made[:] = found
        return made
