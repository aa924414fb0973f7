"""What bounds and limits cut, for the data's owner alone: exact figures, not for publication.

Everything here is read from the data and protects nobody. It is for an owner who may see the rows
anyway and wants to know whether the policy suits them; nothing of it may be published, and a policy
that is changed because of it says something about the data.
"""

from __future__ import annotations

import html
import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dither._display import table
from dither._format import number_text, percent
from dither._notebook import html_table
from dither.engines import Engine
from dither.errors import ArgumentError, DitherError, PolicyError
from dither.ledger import Ledger
from dither.plan import aggregates as ag
from dither.plan import expressions as ex
from dither.plan.facts.scopes import scope_of
from dither.plan.facts.values import infer, listed_values
from dither.plan.lowering.lower import lower
from dither.plan.lowering.recipes import Linear
from dither.plan.relations import Filter, Scan
from dither.plan.schema import ColumnFacts, Kind, Schema, Table
from dither.policy._facts import facts_in, learned_of, with_facts
from dither.policy._owner_losses import losses
from dither.policy._policy import DeclaredTable, Policy, read_policy, schema_of
from dither.policy._sources import connect, differences

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Bias", "owner_bias"]

WARNING = (
    "NOT FOR PUBLICATION: exact figures of the data, without noise, for its owner alone. They "
    "protect nobody; nothing of this may be shown to anybody else"
)

WIDER = 1000
"""How far from the bounds, in widths of them, a value is followed when it is said how far values
are moved; what lies beyond counts as if it lay there."""


@dataclass(frozen=True)
class Bias:
    """What `owner_bias` found: for the owner alone.

    Parameters
    ----------
    rows : tuple of mapping
        Each names a ``table``, what was ``cut`` and ``of`` what, and says the ``share`` and the
        ``number`` that is cut. ``"unreadable"``: values of a column that are there and cannot be
        read as it is declared, which are NULL. ``"no key"``: values that can be read, and are not
        declared, or lie in no bin. ``"lines"``: lines of files that are left out. Of these three,
        where a table has several files, also by ``file``. ``"values"``: values that are read and
        lie outside of the bounds, with how much is ``below`` and ``above``, and by how much the
        mean ``moved``. ``"rows"``: rows that limits leave out.
    kept_away : tuple of Path
        Folders in which published files may lie.
    """

    rows: tuple[Mapping[str, Any], ...]
    kept_away: tuple[Path, ...]

    @property
    def frame(self) -> pl.DataFrame:
        """A Polars frame of the rows. NOT FOR PUBLICATION."""
        import polars as pl

        kinds: dict[str, Any] = dict.fromkeys(("table", "cut", "of", "file"), pl.String)
        kinds["number"] = pl.Int64
        kinds |= dict.fromkeys(("share", "below", "above", "moved"), pl.Float64)
        return pl.DataFrame([dict(row) for row in self.rows], schema=kinds)

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data, under the warning. NOT FOR PUBLICATION."""
        return {"not_for_publication": WARNING, "rows": [dict(row) for row in self.rows]}

    def summary(self) -> str:
        """The figures as text, between two warnings."""
        shown = table(self._heads, self._shown(), left=self._texts)
        return "\n".join([WARNING, "", *shown, "", WARNING])

    def save(self, path: str | Path) -> Path:
        """Write the figures to a JSON file, with the warning in it.

        Raises
        ------
        ArgumentError
            The file exists, or its folder is that of the policy or of the ledger, or holds a
            certificate: published files may lie there.
        """
        target = Path(path).absolute()
        if target.exists():
            raise ArgumentError(f"path: {target.name!r} exists; name a new file")
        if target.parent.resolve() in self.kept_away or _has_certificates(target.parent):
            raise ArgumentError(
                "path: these figures are not for publication, and are not written beside a "
                "policy, a ledger or a certificate; name a folder of your own"
            )
        target.write_text(json.dumps(self.to_dict(), indent=2) + "\n", encoding="utf-8")
        return target

    def _shown(self) -> list[list[str]]:
        made = []
        for row in self.rows:
            moved, file = row["moved"], row["file"]
            sides = [percent(row[s]) if row[s] is not None else "" for s in ("below", "above")]
            named = [row["table"], row["cut"], row["of"]]
            if self._texts > len(named):
                named.append("" if file is None else Path(file).name)
            made.append(
                [*named, f"{row['number']:,}", percent(row["share"]), *sides,
                 "" if moved is None else number_text(moved, 3)]
            )  # fmt: skip
        return made

    @property
    def _texts(self) -> int:
        """How many columns of texts are shown: with files where any has one."""
        return 4 if any(row["file"] is not None for row in self.rows) else 3

    @property
    def _heads(self) -> list[str]:
        return [*_TEXTS[: self._texts], *_NUMBERS]

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        said = f"<p><b>{html.escape(WARNING)}</b></p>"
        return f"<div>{said}{html_table(self._heads, self._shown(), left=self._texts)}{said}</div>"


_TEXTS = ["table", "cut", "of", "file"]
_NUMBERS = ["number", "share", "below", "above", "mean moves by"]


def owner_bias(
    policy: str | Path | Mapping[str, Any],
    *,
    not_for_publication: bool = False,
    sources: Mapping[str, Any] | None = None,
    engines: Mapping[str, Any] | None = None,
) -> Bias:
    """Read the data, and say how much a policy's bounds and limits cut: for the owner alone.

    Parameters
    ----------
    policy, sources, engines
        As for `dither.open`.
    not_for_publication : bool
        Must be true: you may see the data, and nothing of what comes out will be published.

    Returns
    -------
    Bias
        By column, and by file where there are several: the share of values that cannot be read,
        and of those that match no key. By column with bounds: the share of values that are moved,
        and by how much that moves the mean of all values that are read. By table with a unit, and
        by each column that can be grouped by: the share of rows that ``max_rows`` and
        ``max_groups`` leave out.

    Raises
    ------
    ArgumentError
        ``not_for_publication`` is not true.
    PolicyError
        The policy cannot be opened. Where files of a table differ in their columns, the message
        names the files and the columns, and is not for publication either.

    Notes
    -----
    No noise is added and nothing is charged: **this is not private**. The ledger is read, where the
    policy has learned something, and never written.
    """
    if not_for_publication is not True:
        raise ArgumentError(
            "not_for_publication must be True: this reads the data and shows exact figures, "
            "which protect nobody; they are for the owner of the data alone"
        )
    read = read_policy(policy)
    given = dict(sources or {})
    try:
        engine = connect(read, given, dict(engines or {}), owner=True)
    except PolicyError as error:
        apart = differences(read, given)
        if not apart:
            raise
        raise PolicyError("\n".join([f"{error}.", WARNING, *apart, WARNING])) from None
    try:
        found = {name: engine.describe(name) for name in read.tables}
        unread = {name: engine.unread(name) for name in read.tables}
        lists = {name: engine.lists(name) for name in read.tables}
        schema = schema_of(read, found, (), unread, lists)
        engine.check(schema)
        schema = _learned(schema, read)
        rows = [row for table in read.tables.values() for row in _of_table(schema, table, engine)]
    finally:
        engine.close()
    return Bias(tuple(rows), _folders(read))


def _learned(schema: Schema, policy: Policy) -> Schema:
    """The schema with what the ledger holds, where there is one."""
    if not isinstance(policy.ledger, Path) or not policy.ledger.exists():
        return schema
    with Ledger.open(policy.ledger, create=False) as ledger:
        return with_facts(schema, policy, learned_of(policy, facts_in(ledger), schema))


def _folders(policy: Policy) -> tuple[Path, ...]:
    places = [policy.folder]
    if isinstance(policy.ledger, Path):
        places.append(policy.ledger.absolute().parent)
    return tuple(place.resolve() for place in places)


def _has_certificates(folder: Path) -> bool:
    for path in sorted(folder.glob("*.json"))[:1000]:
        try:
            body = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(body, dict) and (
            {"digest", "ledger"} <= body.keys() or "certificate" in body
        ):
            return True
    return False


def _of_table(schema: Schema, declared: DeclaredTable, engine: Engine) -> Iterator[dict[str, Any]]:
    held = schema.table(declared.name)
    if not held.private:
        return
    yield from losses(declared, held, engine)
    for facts in held.columns.values():
        if isinstance(facts.lower, Fraction) and isinstance(facts.upper, Fraction):
            row = _values(schema, held, facts, engine)
            if row is not None:
                yield row
    if held.unit is not None:
        yield from _rows(schema, held, engine)


def _values(
    schema: Schema, held: Table, facts: ColumnFacts, engine: Engine
) -> dict[str, Any] | None:
    """How many values of a column are moved, and how far, on average over all values."""
    lower_, upper = facts.lower, facts.upper
    assert isinstance(lower_, Fraction)
    assert isinstance(upper, Fraction)
    x, far = ex.Column(held.name, facts.name), WIDER * (upper - lower_)
    whole = facts.kind is Kind.INTEGER
    ends = [ex.Literal(int(e) if whole else e) for e in (lower_, upper)]
    moved = ex.Arithmetic("-", ex.Clamp(x, lower_, upper), ex.Clamp(x, lower_ - far, upper + far))
    asked = {
        "n": ag.CountValues(x),
        "below": ag.Sum(_one_where(ex.Compare("<", x, ends[0]))),
        "above": ag.Sum(_one_where(ex.Compare(">", x, ends[1]))),
        "moved": ag.Sum(moved),
    }
    # Without what is declared of it, which every sum would move its values to.
    bare = {**held.columns, facts.name: replace(facts, lower=None, upper=None)}
    plain = replace(held, columns=bare, unit=None, max_groups=1, max_rows=1)
    rows = replace(schema, tables={**schema.tables, held.name: plain})
    found = _asked(asked, Scan(held.name, held.name), rows, engine)
    if found is None or not found["n"]:
        return None
    n = found["n"]
    below, above = found["below"] / n, found["above"] / n
    return {
        "table": held.name,
        "cut": "values",
        "of": facts.name,
        "file": None,
        "number": int(found["below"] + found["above"]),
        "share": float(below + above),
        "below": float(below),
        "above": float(above),
        "moved": float(found["moved"] / n),
    }


def _rows(schema: Schema, held: Table, engine: Engine) -> Iterator[dict[str, Any]]:
    """How many rows the limits leave out, of all and by each column that can be grouped by."""
    scan = Scan(held.name, held.name)
    scope = scope_of(scan, schema)
    assert held.unit is not None
    unit = ex.Column(held.name, held.unit)
    owned = Filter(scan, ex.Not(ex.IsNull(unit)))
    plain = replace(held, unit=None, max_groups=1, max_rows=1)
    rows = replace(schema, tables={**schema.tables, held.name: plain})
    keys: list[tuple[str, ex.Expression | None]] = [("all rows", None)]
    for facts in held.columns.values():
        node: ex.Expression = ex.Column(held.name, facts.name)
        if facts.edges is not None:
            node = ex.Bin(node, facts.edges)
        if facts.name != held.unit and listed_values(infer(node, scope)) is not None:
            keys.append((f"by {facts.name}", node))
    for said, key in keys:
        found = []
        for under in (rows, schema):
            by = () if key is None else (ag.Key("k", key),)
            query = ag.Query(owned, by, (ag.Output("n", ag.Count()),))
            found.append(_total(query, under, engine))
        every, kept = found
        if every:
            yield {
                "table": held.name,
                "cut": "rows",
                "of": said,
                "file": None,
                "number": every - kept,
                "share": 1 - kept / every,
                "below": None,
                "above": None,
                "moved": None,
            }


def _one_where(condition: ex.Expression) -> ex.Expression:
    return ex.Case(((condition, ex.Literal(1)),), ex.Literal(0))


def _asked(
    aggregates: Mapping[str, ag.AggregateFunction], scan: Scan, schema: Schema, engine: Engine
) -> dict[str, Fraction] | None:
    """Exact sums of all rows; ``None`` where there is no row, or a sum could overflow."""
    outputs = tuple(ag.Output(name, one) for name, one in aggregates.items())
    try:
        plan = lower(ag.Query(scan, (), outputs), schema)
        answer = engine.run(plan.job, schema, secrets.token_bytes(32))
    except DitherError:
        return None
    if not answer.keys:
        return None
    found = {}
    for output, recipe in zip(outputs, plan.recipes, strict=True):
        assert isinstance(recipe, Linear)
        found[output.name] = sum(
            (c * int(answer.values[i][0]) for i, c in recipe.terms), start=Fraction(0)
        )
    return found


def _total(query: ag.Query, schema: Schema, engine: Engine) -> int:
    """The sum of a count over all groups."""
    plan = lower(query, schema)
    answer = engine.run(plan.job, schema, secrets.token_bytes(32))
    (recipe,) = plan.recipes
    assert isinstance(recipe, Linear)
    ((place, _),) = recipe.terms
    listed = [
        i
        for i, key in enumerate(answer.keys)
        if all(k.values is None or v in k.values for k, v in zip(plan.job.keys, key, strict=True))
    ]
    return sum(int(answer.values[place][i]) for i in listed)
