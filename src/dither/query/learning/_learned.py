"""What learning gives back: bounds, limits or keys, each with its error and what it cost."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Mapping
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any

from dither._format import cost_text, count_text, level, number_text, percent, wrapped
from dither._notebook import html_lines
from dither.plan.text import show_value
from dither.policy._facts import end_of, end_text
from dither.query._release import Release, decode
from dither.session._certificate import Certificate
from dither.session.dummies._marked import marked

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Learned", "LearnedBounds", "LearnedKeys", "LearnedLimits", "learned"]


class Learned:
    """Something learned at a price: public from now on.

    Parameters
    ----------
    release : Release
        The noisy histogram, or the keys, that it was read from.
    """

    def __init__(self, release: Release) -> None:
        self._release = release
        self._content: Mapping[str, Any] = release._content["learned"]

    @property
    def content(self) -> Mapping[str, Any]:
        """What was learned, as plain data."""
        return dict(self._content)

    @property
    def table(self) -> str:
        """Of which table."""
        return str(self._content["table"])

    @property
    def frame(self) -> pl.DataFrame:
        """A Polars frame of what was released: the noisy histogram, or the keys.

        Of a histogram each cell has its ends, ``from`` and ``to``, and its noisy number of units,
        or of rows where a row is a person, with an interval.
        """
        return self._release.frame

    @property
    def certificate(self) -> Certificate:
        """What was promised, and where the ledger has it."""
        return self._release.certificate

    @property
    def replayed(self) -> bool:
        """Whether it was learned before, and is replayed free of charge."""
        return self._release.replayed

    @property
    def confidence(self) -> float:
        """Of what is said about the error."""
        return self._release.confidence

    @property
    def policy(self) -> str | None:
        """The line that declares it in a policy; ``None`` where nothing could be learned."""
        raise NotImplementedError

    def summary(self) -> str:
        """What was learned, how far that can be trusted, and what it cost, as text."""
        title, *lines = self._lines()
        body = self.certificate.to_dict()
        epsilon, delta = self._release._loss
        again = " (replayed: nothing charged now)" if self.replayed else ""
        lines.append(
            f"cost: {cost_text(epsilon, delta)}; ledger entry {body['ledger']['entry']}{again}"
        )
        lines.append(f"protects {body['text']['protects']}")
        return "\n".join([title, *(line for text in lines for line in wrapped(text, "  "))])

    def _lines(self) -> list[str]:
        raise NotImplementedError

    def plot(self, path: str | None = None, *, title: str | None = None) -> Any:
        """Draw what it was read from; see ``dither.plots``.

        Parameters
        ----------
        path : str, optional
            Where to write a PNG, SVG or PDF.
        title : str, optional
            What stands above the picture.

        Returns
        -------
        matplotlib.figure.Figure
        """
        return self._drawn().plot(path, title=title)

    def _drawn(self) -> Release:
        """What a picture shows: keys as they are, of a histogram the cells about what was found."""
        content = self._release._content
        if content["keys"] != ["from", "to"]:
            return self._release
        first, last, *counted = content["columns"]
        ends = [[decode(v, column["kind"]) for v in column["values"]] for column in (first, last)]
        cells = list(zip(*ends, strict=True))
        found = [i for i, cell in enumerate(cells) if self._shown(*cell)] or [len(cells) // 2]
        rows = range(max(found[0] - BESIDE, 0), min(found[-1] + BESIDE + 1, len(cells)))
        named = [_cell_name(*cells[i]) for i in rows]
        columns = [{"name": "cell", "kind": "text", "values": named}]
        columns += [c | {"values": [c["values"][i] for i in rows]} for c in counted]
        units = {"cell": None} | dict.fromkeys(content["outputs"])
        return Release({**content, "columns": columns, "keys": ["cell"], "units": units})

    def _shown(self, first: Any, last: Any) -> bool:
        """Whether a cell lies within what was found."""
        return False

    @property
    def _what(self) -> str:
        """The column, or the elements of it."""
        column = str(self._content["column"])
        return f"the elements of {column}" if self._content.get("elements") else column

    @property
    def _who(self) -> str:
        """Whom the noise protects, one of them by name."""
        tables = self.certificate.to_dict()["tables"]
        by = tables[self.table]
        return by.removeprefix("column ") if by.startswith("column ") else "row"

    def _faint(self, seen: float) -> str:
        return (
            f"nothing could be told from noise, which hides what fewer than about "
            f"{number_text(seen, 3)} units of {self._who} have in common; it is charged all the "
            "same. A larger epsilon tells more"
        )

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        title, *lines = self.summary().splitlines()
        return html_lines(title, lines)


class LearnedBounds(Learned):
    """Bounds of a column of numbers, dates or times, or of the elements of its lists.

    Examples
    --------
    See `Session.learn`.
    """

    @property
    def column(self) -> str:
        """Of which column."""
        return str(self._content["column"])

    @property
    def lower(self) -> Fraction | dt.date | None:
        """The lower bound, of the column's kind; ``None`` where nothing could be learned."""
        return end_of(self._content["lower"], self._content["type"])

    @property
    def upper(self) -> Fraction | dt.date | None:
        """The upper bound, of the column's kind; ``None`` where nothing could be learned."""
        return end_of(self._content["upper"], self._content["type"])

    @property
    def outside(self) -> float | None:
        """The share of values that the bounds will move, as far as can be told.

        Where a column says whose a row is, each unit's values weigh one together.
        """
        return _share(self._content["expected"])

    @property
    def outside_at_most(self) -> float | None:
        """That share is no larger, with the stated confidence."""
        return _share(self._content["most"])

    @property
    def unreadable(self) -> float | None:
        """The share of what is there that cannot be read as declared, as far as can be told.

        ``None`` of elements of lists, and of what was learned before this was counted.
        """
        return _share((self._content.get("unreadable") or {}).get("expected"))

    @property
    def unreadable_at_most(self) -> float | None:
        """That share is no larger, with the stated confidence."""
        return _share((self._content.get("unreadable") or {}).get("most"))

    @property
    def policy(self) -> str | None:
        """The line that declares the bounds in a policy; ``None`` where there are none."""
        if self.lower is None or self.upper is None:
            return None
        return f"{_toml(self.column, name=True)} = {{ bounds = {self._ends()} }}"

    def _ends(self) -> str:
        assert self.lower is not None
        assert self.upper is not None
        return f"[{end_text(self.lower)}, {end_text(self.upper)}]"

    def _shown(self, first: Any, last: Any) -> bool:
        lower, upper = self.lower, self.upper
        if lower is None or upper is None:
            return False
        if isinstance(lower, Fraction) and isinstance(upper, Fraction):
            return bool(first >= float(lower) and last <= float(upper))
        return bool(first >= lower and last <= upper)

    def _lines(self) -> list[str]:
        if self.lower is None or self.upper is None:
            faint = self._faint(self._content["seen"])
            return [f"no bounds of {self._what}", *self._lost(), faint]
        title = f"bounds of {self._what}: {self._ends()}"
        return [title, self._error(), *self._lost(), f"in the policy: {self.policy}"]

    def _lost(self) -> list[str]:
        if self.unreadable is None or self.unreadable_at_most is None:
            return []
        return [
            f"at most {percent(self.unreadable_at_most, turn=ceil)} of what is there cannot be "
            f"read as {self._content['type']} (about {percent(round(self.unreadable, 3))}), and is "
            "in no answer"
        ]

    def _error(self) -> str:
        assert self.outside is not None
        assert self.outside_at_most is not None
        whose = "" if self._who == "row" else f", where each {self._who} weighs alike"
        return (
            f"at most {percent(self.outside_at_most, turn=ceil)} of the values lie outside at "
            f"{level(self.confidence)} confidence (about {percent(round(self.outside, 3))}"
            f"{whose}); "
            "aggregates move them to the nearest bound"
        )


class LearnedLimits(Learned):
    """How much of one unit should count: ``max_rows``, and ``max_groups`` where it was asked."""

    @property
    def by(self) -> list[str]:
        """What divides a unit's rows into groups."""
        return list(self._content["by"])

    @property
    def max_rows(self) -> int | None:
        """Rows of a unit in its largest group; ``None`` where nothing could be learned."""
        return self._limit("rows")

    @property
    def max_groups(self) -> int | None:
        """Groups that a unit has rows in; ``None`` where it was not asked, or not learned."""
        return self._limit("groups")

    @property
    def cut(self) -> dict[str, float]:
        """By limit: the share of units that have more, as far as can be told."""
        return {f"max_{name}": facts["expected"] for name, facts in self._found().items()}

    @property
    def cut_at_most(self) -> dict[str, float]:
        """Each of those shares is no larger, with the stated confidence."""
        return {f"max_{name}": facts["most"] for name, facts in self._found().items()}

    @property
    def policy(self) -> str | None:
        """The lines that declare the limits in a policy; ``None`` where there are none."""
        lines = [f"max_{name} = {self._limit(name)}" for name in self._found()]
        return "\n".join(lines) or None

    def _shown(self, first: Any, last: Any) -> bool:
        limits = [self._limit(name) or 0 for name in ("rows", "groups")]
        return bool(last <= max(limits))

    def _limit(self, name: str) -> int | None:
        facts = self._content.get(name)
        return None if facts is None or facts["upper"] is None else int(facts["upper"])

    def _found(self) -> dict[str, Mapping[str, Any]]:
        names = [name for name in ("groups", "rows") if self._limit(name) is not None]
        return {name: self._content[name] for name in names}

    def _lines(self) -> list[str]:
        limits = [f"max_{name} = {self._limit(name)}" for name in self._found()]
        title = f"limits of {self.table}: {', '.join(limits) or 'none'}"
        if self.by:
            title += f" (by {', '.join(self.by)})"
        lines = [title]
        for name, facts in self._found().items():
            limit = count_text(self._limit(name) or 0, name.removesuffix("s"))
            beyond = facts.get("beyond")
            which = "" if beyond is None else f", about {percent(round(beyond, 3))} of all {name}"
            lines.append(
                f"at most {percent(facts['most'], turn=ceil)} of the units ({self._who}) have more "
                f"than {limit} at {level(self.confidence)} confidence (about "
                f"{percent(round(facts['expected'], 3))}); what they have beyond is cut{which}"
            )
        for name in ("groups", "rows"):
            missed = self._content.get(name)
            if missed is not None and self._limit(name) is None:
                lines.append(f"max_{name}: {self._faint(missed['seen'])}")
        return lines


class LearnedKeys(Learned):
    """The values of a column that enough units have."""

    @property
    def column(self) -> str:
        """Of which column."""
        return str(self._content["column"])

    @property
    def values(self) -> list[Any]:
        """The values, in order; none where no value has enough units."""
        found = list(self._content["values"])
        if self._content["type"] == "date":
            return [dt.date.fromisoformat(value) for value in found]
        return found

    @property
    def policy(self) -> str | None:
        """The line that declares the values in a policy; ``None`` where there are none."""
        if not self.values:
            return None
        listed = ", ".join(map(_toml, self.values))
        return f"{_toml(self.column, name=True)} = {{ values = [{listed}] }}"

    def _lines(self) -> list[str]:
        listed = ", ".join(map(show_value, self.values)) or "none"
        half, rare = self._content["half"], self._content["rare"]
        return [
            f"values of {self._what}: {listed}",
            f"a value that {half} units ({self._who}) have is missed half the time, one that "
            f"{rare} have in 5 % of releases; a unit with several values counts for one of them",
            *([f"in the policy: {self.policy}"] if self.policy else []),
        ]


def learned(release: Release) -> LearnedBounds | LearnedLimits | LearnedKeys:
    """What a release of learning says."""
    kind = release._content["learned"]["kind"]
    kinds = {"bounds": LearnedBounds, "limits": LearnedLimits, "keys": LearnedKeys}
    found = kinds[kind](release)
    return marked(found, release.certificate.content)  # type: ignore[return-value]


BESIDE = 3
"""Cells that a picture shows beyond what was found, on either side."""


def _cell_name(first: Any, last: Any) -> str:
    """A cell by its ends."""
    days = isinstance(first, dt.date)
    ends = [str(end) if days else number_text(end, 4) for end in (first, last)]
    return ends[0] if first == last else " to ".join(ends)


def _share(value: float | None) -> float | None:
    return None if value is None else float(value)


def _toml(value: Any, *, name: bool = False) -> str:
    """A value as TOML writes it, or a name, which needs quotes where it has more than letters."""
    if name and re.fullmatch(r"[A-Za-z0-9_-]+", value):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return str(value)
