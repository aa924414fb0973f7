"""What callers of scikit-learn's estimators expect, with that library and without it.

*Fits of copies.* Helpers that search, cross-validate or bag fit copies of one estimator on much the
same rows, and show the last of them. What that one cost says nothing of the others, and a choice by
exact scores on private rows is in no loss at all. So copies know of each other: each fit is written
down for all of them, a helper that fits a second one is warned about, and a search that fits the
winner again with what all cost together. The list is of one process. A copy that another process
fitted is counted where the search says how many there were, at the loss of the winner; elsewhere
nobody counts it.
"""

from __future__ import annotations

import html
import sys
import warnings
from collections.abc import Sequence
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._format import cost_text, count_text, display_text
from dither.errors import ArgumentError, NotFittedError
from dither.privacy import Loss

__all__ = ["SharedFits", "contained", "html_of", "no_weights", "not_fitted", "score_weights"]

Floats = npt.NDArray[np.float64]

OUTPUTS = ("default", "pandas", "polars")


def not_fitted(kind: str) -> NotFittedError:
    """The error of a model without a fit: scikit-learn's own as well, where that is installed."""
    try:
        own = _both()
    except ImportError:
        own = NotFittedError
    return own(f"this {kind} is not fitted yet: call fit(X, y)")


def _both() -> type[NotFittedError]:
    if "SharedNotFittedError" not in globals():
        from sklearn.exceptions import NotFittedError as Theirs

        globals()["SharedNotFittedError"] = type(
            "SharedNotFittedError", (NotFittedError, Theirs), {"__module__": __name__}
        )
    made: type[NotFittedError] = globals()["SharedNotFittedError"]
    return made


def __getattr__(name: str) -> object:
    # So that the error is found by its name where another process raised it.
    if name == "SharedNotFittedError":
        return _both()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def no_weights(given: Any) -> None:
    """Refuse weights of rows.

    Raises
    ------
    ArgumentError
        They are given.
    """
    if given is not None:
        raise ArgumentError(
            "sample_weight is not taken: noise hides what one row can change, and a row of weight "
            "3, or one that bagging draws three times, changes three times as much. Leave it out; "
            "for classes of unequal size compare predict_proba with a share other than a half"
        )


def score_weights(given: Any, rows: int) -> Floats | None:
    """Weights of rows that are scored, which nothing protects; None where they count alike.

    Raises
    ------
    ArgumentError
        They are not one number a row, at least 0, with a finite sum above 0.
    """
    if given is None:
        return None
    try:
        found = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        found = np.empty(0)
    if found.shape != (rows,) or not ((found >= 0).all() and 0 < found.sum() < np.inf):
        raise ArgumentError(
            "sample_weight must be one finite number for each row, at least 0, and not all of them "
            "0"
        )
    return found


def contained(model: Any, X: Any, found: Floats) -> Any:
    """What ``transform`` gives, as `set_output` asks: an array, or a frame of its columns.

    Parameters
    ----------
    model : Transformer
    X : table
        Of a pandas frame the index is kept.
    found : array, shape (n, m)

    Raises
    ------
    ArgumentError
        The library of the frame is not installed.
    """
    wanted = getattr(model, "_sklearn_output_config", {}).get("transform")
    if wanted is None:
        # What ``sklearn.set_config`` says for all; nobody can have said it without the library.
        library = sys.modules.get("sklearn")
        wanted = "default" if library is None else library.get_config()["transform_output"]
    if wanted == "default":
        return found
    names = model.get_feature_names_out().tolist()
    try:
        if wanted == "pandas":
            import pandas as pd

            index = X.index if isinstance(X, pd.DataFrame) else None
            return pd.DataFrame(found, columns=names, index=index)
        import polars as pl
    except ImportError:
        raise ArgumentError(
            f"set_output(transform={wanted!r}) needs {wanted}, which is not installed: install it, "
            'or ask for "default"'
        ) from None
    return pl.DataFrame(found, schema=names, orient="row")


def output_asked(transform: Any) -> str | None:
    """The container that `set_output` is asked for; None leaves what was."""
    return None if transform is None else check.choice("transform", transform, OUTPUTS)


class SharedFits:
    """The fits of an estimator and of its copies, in this process.

    Attributes
    ----------
    losses : list of Loss
        What each of them cost, in the order in which they ended.
    warned : bool
    """

    def __init__(self) -> None:
        self.losses: list[Loss] = []
        self.warned = False

    def __deepcopy__(self, memo: Any) -> SharedFits:
        return self

    def fitted(self, kind: str, loss: Loss, copy: bool) -> Loss | None:
        """Write a fit down, and warn where a helper of scikit-learn fits several.

        Parameters
        ----------
        kind : str
            The name of the estimator.
        loss : Loss
            What this fit cost.
        copy : bool
            Whether the estimator was copied, or is a copy.

        Returns
        -------
        Loss or None
            What all fits cost together; None where they promise different things.
        """
        self.losses.append(loss)
        helper, before = _helper() if copy else (None, 0)
        fits = max(len(self.losses), before + 1)
        whole = together(self.losses, fits - len(self.losses))
        if helper is None or fits == 1 or (self.warned and not before):
            return whole
        self.warned = True
        so_far = "" if before else " so far"
        price = "" if whole is None else f", which cost {_cost(whole)} together{so_far}"
        if before:
            said = (
                f"best_estimator_.loss_, {_cost(loss)}, is of the last fit alone. The others used "
                "the rows as much, and the choice among them was made by exact scores, which no "
                "epsilon bounds, so that the winner and its parameters may give rows away. Choose "
                "with dither.learn.search, whose loss holds the choice"
            )
        else:
            said = (
                f"loss_ of each, {_cost(loss)}, is of that fit alone. Add up those that are "
                "published, and know that scores on private rows are exact"
            )
        many = count_text(fits, "copy", "copies")
        warnings.warn(f"{helper} fitted {many} of this {kind}{price}: {said}", stacklevel=5)
        return whole


def together(losses: Sequence[Loss], more: int = 0) -> Loss | None:
    """What fits cost in all; ``more`` of them as much as the last. None of different promises."""
    if len({loss.neighbours for loss in losses}) > 1:
        return None
    counted = dict.fromkeys(losses, 0)
    for loss in losses:
        counted[loss] += 1
    counted[losses[-1]] += more
    found = Loss((), losses[-1].neighbours)
    for loss, times in counted.items():
        found = found + times * loss
    return found


def _cost(loss: Loss) -> str:
    charge = loss.charge
    if charge.epsilon is None:
        return cost_text(Fraction(loss.epsilon(1e-6).upper), Fraction(1, 10**6))
    return cost_text(charge.epsilon, charge.delta)


def _helper() -> tuple[str | None, int]:
    """Who of scikit-learn fits a copy now, and how many it fitted before where that is known.

    None where a caller's own code does, and in a fold of a search or of cross-validation: of those
    no model is kept, and a search is told the whole when it fits its winner again.
    """
    base = sys.modules.get("sklearn.base")
    search = sys.modules.get("sklearn.model_selection._search")
    pipeline = sys.modules.get("sklearn.pipeline")
    frame = None if base is None else sys._getframe(2)
    while frame is not None:
        own = frame.f_locals.get("self")
        if frame.f_code.co_name == "_fit_and_score":
            break
        if search is not None and isinstance(own, search.BaseSearchCV):
            return type(own).__name__, len(frame.f_locals.get("all_out", ()))
        through = pipeline is not None and isinstance(own, pipeline.Pipeline)
        if isinstance(own, base.BaseEstimator) and not through:  # type: ignore[union-attr]
            return type(own).__name__, 0
        frame = frame.f_back
    return None, 0


def html_of(model: Any, protects: str) -> str:
    """An estimator as a notebook shows it: its parameters, and what its fit cost, if it has one.

    ``protects`` says whom a fit protects; nothing where there is none.
    """
    given = set(model._given())
    cell = "border:0;background:none;text-align:left;vertical-align:top;padding:0 1em 0 0"

    def line(name: str) -> str:
        weight = "" if name in given else ";opacity:.55"
        value = html.escape(display_text(_short(getattr(model, name)), 100))
        return (
            f'<tr><td style="{cell}{weight}">{html.escape(name)}</td>'
            f'<td style="{cell}{weight}">{value}</td></tr>'
        )

    names = sorted(model._names(), key=lambda name: name not in given)
    lines = "".join(line(name) for name in names)
    kind = type(model).__name__
    if model.__sklearn_is_fitted__():
        state = f"fitted: {_cost(model.loss_)}"
        said = [f"protects {protects}"]
        whole = model.loss_with_copies_
        if whole is not None and whole != model.loss_:
            said.append(f"all fits of it and its copies in this process: {_cost(whole)} together")
    else:
        state, said = "not fitted", ["fit(X, y) costs what epsilon and delta say, each time"]
    notes = "".join(f"<div>{html.escape(text)}</div>" for text in said)
    return (
        '<div class="dither-estimator" style="font-family:ui-monospace,Menlo,Consolas,monospace;'
        'font-size:13px;line-height:1.45;max-width:60em">'
        f"<details open><summary><b>{html.escape(kind)}</b> ({html.escape(state)})</summary>"
        f'<div style="margin:.2em 0 .4em 1.2em">{notes}'
        '<table style="border:0;border-collapse:collapse;margin:.3em 0 0;font:inherit">'
        f"{lines}</table></div></details></div>"
    )


def _short(value: Any) -> str:
    """A parameter in one line; of arrays no more than what fits."""
    if isinstance(value, np.ndarray):
        return np.array2string(value, threshold=8, max_line_width=10**6)
    if isinstance(value, np.generic):
        return str(value)
    return repr(value.value if isinstance(value, Enum) else value)
