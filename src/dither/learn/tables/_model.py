"""What a session's learning releases: a model with its certificate, kept in files that are text."""

from __future__ import annotations

import hashlib
import html
import json
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dither._files import written
from dither._format import wrapped
from dither.errors import ArgumentError, nearest
from dither.privacy import Charge, Loss, Neighbours, Promise, approximate
from dither.session._certificate import Certificate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["LearnedModel", "damaged", "loss_of", "read_content"]

FORMAT = 1
_TITLES = {
    "additive": "additive model",
    "forest": "random forest",
    "linear": "linear model",
    "logistic": "logistic model",
    "naive_bayes": "naive Bayes",
}
_LARGEST = 1 << 28
"""Bytes of a file that is read."""


def loss_of(content: Mapping[str, Any]) -> Loss:
    """The loss that a release was charged, from its certificate."""
    body = content["certificate"]
    amounts: dict[str, Any] = {
        name: None if value is None else Fraction(value) for name, value in body["loss"].items()
    }
    promise = Promise(body["promise"]["unit"], Neighbours(body["promise"]["neighbours"]))
    made = approximate(amounts["epsilon"], amounts["delta"], neighbours=promise.neighbours)
    return made.with_charge(Charge(**amounts)).promising(promise)


class LearnedModel:
    """A model that a protected table taught; it may be handed out.

    Made by the questions of ``session.table("visits").learn(...)``, or read by
    `load`. Whatever is
    asked of it costs nothing more.

    Parameters
    ----------
    content : mapping
        What was released, as the ledger and files keep it.
    read : callable
        Makes the estimator of it; it raises on what is not one.
    replayed : bool
        Whether it is an earlier answer, replayed free of charge.

    Notes
    -----
    *Guarantee.* That of its release: `certificate` says what it is and whom it protects.
    """

    def __init__(
        self,
        content: Mapping[str, Any],
        read: Callable[[Mapping[str, Any]], Any],
        *,
        replayed: bool = False,
    ) -> None:
        self._content, self._read, self.replayed = content, read, replayed

    @cached_property
    def model(self) -> Any:
        """The estimator, fitted: what it gives to ``predict`` and what there is to see of it."""
        return self._read(self._content)

    @property
    def kind(self) -> str:
        """``"additive"``, ``"forest"``, ``"naive_bayes"``, ``"linear"`` or ``"logistic"``."""
        return str(self._content["kind"])

    @property
    def formula(self) -> str:
        """What is predicted, and from which columns."""
        return str(self._content["formula"])

    @property
    def target(self) -> str:
        """The column that is predicted."""
        return str(self._content["target"]["name"])

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is predicted from."""
        return tuple(str(column["name"]) for column in self._content["columns"])

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """The classes that are told apart; None of a model that predicts a number."""
        found = getattr(self.model, "classes_", None)
        return None if found is None else tuple(getattr(found, "tolist", lambda: found)())

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns whose declared values are texts, however like numbers they look."""
        levels = self._content.get("levels", {})
        listed = {
            column["name"]: column.get("categories") or levels.get(column["name"]) or ()
            for column in self._content["columns"]
        }
        return tuple(name for name, known in listed.items() if known and isinstance(known[0], str))

    @property
    def loss(self) -> Loss:
        """What its release was charged."""
        return loss_of(self._content)

    @property
    def certificate(self) -> Certificate:
        """What was promised, and where the ledger has it."""
        return Certificate(self._content["certificate"])

    @property
    def notes(self) -> list[str]:
        """What a reader should know."""
        return list(self._content["notes"])

    def predict(self, frame: Any) -> Any:
        """What is predicted of each row of a frame, shape (n,).

        Parameters
        ----------
        frame : frame or mapping from names to columns
            With the model's columns; others are left aside. These rows are not protected.

        Raises
        ------
        ArgumentError
            A column is missing.
        """
        return self.model.predict(self._chosen(frame))

    def predict_proba(self, frame: Any) -> Any:
        """The probabilities of the classes, shape (n, classes).

        Raises
        ------
        ArgumentError
            A column is missing, or the model predicts a number.
        """
        if not hasattr(self.model, "predict_proba"):
            raise ArgumentError("this model predicts a number, and no probabilities")
        return self.model.predict_proba(self._chosen(frame))

    def _chosen(self, frame: Any) -> Any:
        """The model's columns of a frame."""
        import polars as pl

        there = list(getattr(frame, "columns", frame if isinstance(frame, Mapping) else ()))
        if not there:
            raise ArgumentError("frame must be a frame, or a mapping from names to columns")
        names = {str(name): name for name in there}
        for name in self.columns:
            if name not in names:
                raise ArgumentError(f"frame has no column {name!r}{nearest(name, list(names))}")
        if isinstance(frame, Mapping):
            try:
                return pl.DataFrame({name: frame[name] for name in self.columns}, strict=False)
            except (pl.exceptions.PolarsError, TypeError, ValueError):
                raise ArgumentError("frame must have columns of one length") from None
        return frame[[names[name] for name in self.columns]]

    def summary(self) -> str:
        """What it is, what it says, and what it cost, as text."""
        again = ", replayed: nothing is charged now" if self.replayed else ""
        entry = self._content["certificate"]["ledger"]["entry"]
        lines = [
            f"{_TITLES[self.kind]} of {self._content['table']}: {self.formula}",
            self.model.summary(),
            f"ledger entry {entry}{again}",
            *self.notes,
        ]
        first, body, *rest = lines
        told = [line for text in rest for line in wrapped(text, "  ")]
        return "\n".join([*wrapped(first), body, *told])

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw what each column says.

        Saved to ``path`` (.png, .svg or .pdf) where one is given.
        """
        found: Figure = self.model.plot(path)
        return found

    def save(self, path: str | Path) -> Path:
        """Write it to a file of JSON, for `load`; all of it or nothing.

        The file holds noisy numbers and the certificate, and nothing private.
        """
        body = json.dumps(self._content, ensure_ascii=False, sort_keys=True)
        whole = {"format": FORMAT, "digest": _digest(body), "model": json.loads(body)}
        text = json.dumps(whole, ensure_ascii=False, indent=1, sort_keys=True)
        target = Path(path)
        written(target, (text + "\n").encode("utf-8"))
        return target

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.summary())}</pre>"


def read_content(path: str | Path) -> dict[str, Any]:
    """What `LearnedModel.save` wrote, unchanged.

    Raises
    ------
    ArgumentError
        Where there is no such file, or it is something else.
    """
    source = Path(path)
    if not source.is_file():
        raise ArgumentError(f"no model at {str(path)!r}")
    try:
        if source.stat().st_size > _LARGEST:
            raise ValueError("too large")
        whole = json.loads(source.read_bytes())
        known = whole["format"] == FORMAT
        body = json.dumps(whole["model"], ensure_ascii=False, sort_keys=True)
        if known and whole["digest"] != _digest(body):
            raise ValueError("changed")
        found = dict(whole["model"])
    except Exception:
        raise damaged(path) from None
    if not known:
        raise ArgumentError(f"{str(path)!r} is a model of a format that this version lacks")
    return found


def damaged(path: str | Path) -> ArgumentError:
    """What is said of a file that is not a model."""
    return ArgumentError(f"{str(path)!r} is not a model, or is damaged")


def _digest(body: str) -> str:
    return hashlib.sha256(f"dither model {FORMAT}\n{body}".encode()).hexdigest()
