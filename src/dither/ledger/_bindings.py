"""Tables within a ledger: each stays with its promise, and rows with the account they began under.

An account adds up what was learned of a unit. The same rows read for another account would begin
with a fresh budget, and neither would know of the other. So a ledger keeps of each table what its
rows are known by. A table by another name that surely has rows in common with one that is charged
to another account is refused; where that cannot be told, it is said loudly, and once: before the
table is charged for the first time.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING

from dither.errors import ArgumentError, PromiseError
from dither.ledger._entries import MORE, MOST_SOURCES, BoundTable, Tables, canonical
from dither.privacy._promise import Promise

if TYPE_CHECKING:
    from dither.ledger._ledger import Ledger
    from dither.privacy import Loss

__all__ = ["BearingAccount", "ReadTables", "Source", "doubt", "same_text"]

Source = tuple[str, str]
"""What rows are known by, and its mark."""

Same = Callable[[Source, Source], bool | None]


def same_text(one: Source, other: Source) -> bool | None:
    """Whether two sources have one text."""
    return one[0] == other[0]


@dataclass(frozen=True)
class BearingAccount:
    """The account that bears what is released of data that a caller holds.

    Parameters
    ----------
    ledger : Ledger
    account : str
    name : str
        What the ledger calls the data: as a table, they stay with the promise that they were first
        charged under.
    kind, rule : str
        What the data are, and what says whose a part of them is.

    Raises
    ------
    ArgumentError
        It is no ledger, or no name.
    """

    ledger: Ledger
    account: str
    name: str
    kind: str
    rule: str

    def __post_init__(self) -> None:
        # Filters have a `charge` of their own; a ledger's class is not known here, as it stands on
        # this module.
        if not (hasattr(self.ledger, "charge") and hasattr(self.ledger, "open_accounts")):
            raise ArgumentError("ledger must be a Ledger, such as Ledger.open('visits.ledger')")
        if not isinstance(self.account, str) or not self.account:
            raise ArgumentError("account must name an account of the ledger")
        if not isinstance(self.name, str) or not self.name:
            raise ArgumentError(f"name must be text: what the ledger calls the {self.kind}")

    def charge(self, loss: Loss, what: str, *said: object) -> None:
        """Charge what is about to be released.

        Each call is a charge of its own: nothing is kept that could be replayed.

        Parameters
        ----------
        loss : Loss
        what : str
            What is released.
        *said : text, whole number, fraction or None
            What its answer depends on beside the data.

        Raises
        ------
        BudgetError, PromiseError
            The account cannot bear it, or protects another unit; nothing was charged.
        """
        words = "\n".join([f"dither {self.kind} 1", what, *map(str, said)])
        self.ledger.charge(
            [self.account],
            loss,
            token=secrets.token_hex(16),
            request=sha256(words.encode()).hexdigest(),
            note={self.kind: what},
            tables={self.name: self.rule},
        )


@dataclass(frozen=True)
class ReadTables:
    """The private tables that a charge reads.

    Parameters
    ----------
    by : mapping of str to str
        By table: what says whose a row is.
    sources : mapping of str to mapping, optional
        By table: what its rows are known by, each with its mark; none where that cannot be told.
        ``None`` where the caller says nothing of it.
    same : callable
        Whether two sources have rows in common; ``None`` where that cannot be told.
    """

    by: Mapping[str, str]
    sources: Mapping[str, Mapping[str, str]] | None = None
    same: Same = field(default=same_text)

    def __post_init__(self) -> None:
        """Refuse what the ledger could not write."""
        texts = [*self.by.keys(), *self.by.values()]
        if not all(isinstance(t, str) and t and len(t) <= 1000 for t in texts):
            raise ArgumentError(
                "tables must map each table's name to what says whose its rows are, as text"
            )
        canonical(dict(self.by), "tables")
        for held in (self.sources or {}).values():
            pairs = held.items() if isinstance(held, Mapping) else [(None, None)]
            if not all(isinstance(t, str) and len(t) <= 10_000 for pair in pairs for t in pair):
                raise ArgumentError(
                    "sources must map each table's name to the texts that its rows are known by, "
                    "each with its mark, as text"
                )

    def bound(self, known: Tables, promise: Promise) -> dict[str, BoundTable]:
        """The tables charged so far with those read now.

        Raises
        ------
        PromiseError
            One would be under two promises, or its rows in two accounts.
        """
        found = dict(known)
        for name, by in self.by.items():
            first = known.get(name, BoundTable(promise, by))
            if first.promise != promise:
                raise PromiseError(
                    f"table {name!r} was charged for {first.promise.describe()} before, and now "
                    f"for {promise.describe()}: one account would miss what the other spent. "
                    "Declare its unit and neighbours as they were, or begin a new ledger"
                )
            if first.by != by:
                raise PromiseError(
                    f"in table {name!r} {first.by!r} said whose a row is, and now {by!r} does: one "
                    f"{promise.unit} is then not what it was. Declare its unit as it was, or begin "
                    "a new ledger"
                )
            for other in self._sharing(name, known, BoundTable(promise, by), True):
                raise PromiseError(
                    f"table {name!r} reads rows that this ledger has as table {other!r}, charged "
                    f"for {known[other].promise.describe()}: another account would begin with a "
                    "fresh budget for the same rows. Ask under that name, or declare one unit for "
                    "both tables in [units.NAME] from the first charge on"
                )
            new = dict((self.sources or {}).get(name, {}))
            found[name] = BoundTable(promise, by, _kept({**first.sources, **new}, new))
        return found

    def doubts(self, known: Tables, promise: Promise) -> Iterator[tuple[str, str]]:
        """Tables never charged before, each with one of another account that may hold its rows.

        Of two that are read together, whoever opened them knows.
        """
        for name, by in self.by.items():
            if name not in known and self.sources is not None:
                for other in self._sharing(name, known, BoundTable(promise, by), None):
                    if other not in self.sources:
                        yield name, other

    def _sharing(
        self, name: str, known: Tables, own: BoundTable, wanted: bool | None
    ) -> Iterator[str]:
        if self.sources is None:
            return
        new = dict(self.sources.get(name, {}))
        if name in known and wanted is True:
            # What was read for it before was looked at then.
            new = {text: mark for text, mark in new.items() if text not in known[name].sources}
            if not new:
                return
        for other, held in known.items():
            if other == name or (held.promise, held.by) == (own.promise, own.by):
                continue
            pairs = [(one, two) for one in new.items() for two in held.sources.items()]
            answers = [None if MORE in (p[0][0], p[1][0]) else self.same(*p) for p in pairs]
            found: bool | None = None if not pairs else False
            if True in answers:
                found = True
            elif None in answers:
                found = None
            if found is wanted:
                yield other


def _kept(sources: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
    """Sources with those of now last; of very many the newest, and that there were others."""
    order = [text for text in sources if text not in new and text != MORE] + list(new)
    kept = {text: sources[text] for text in order[-MOST_SOURCES:]}
    if len(kept) < len(order) or MORE in sources:
        kept[MORE] = ""
    return kept


def doubt(name: str, other: str, promise: Promise) -> str:
    """What is said of a table that may have the rows of another."""
    return (
        f"table {name!r} is charged to an account of its own, and may hold the same rows as table "
        f"{other!r}, which this ledger charges for {promise.describe()}: dither cannot tell where "
        "these come from. If they are the same people's rows, each of the two accounts misses what "
        "the other spends: declare one unit for both in [units.NAME]"
    )
