"""The kinds of question that forms ask, and the calls that each makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dither.service._endpoints import NotFoundError
from dither.service.page.asked._python import decimal
from dither.service.page.forms._fields import FormField, fields_of, read_fields, written
from dither.session._factories import INFERENCE, factory

__all__ = ["KINDS", "FormKind", "form_of", "kind_of"]

IN_PYTHON_ALONE = {
    "marginals": ("weights",),
    "hierarchy": ("invariants",),
    "f_oneway": ("levels",),
    "synthesis": ("max_bytes", "zeros", "known", "total", "token", "progress"),
}
"""What is a mapping of mappings, a function, or a list of levels is no field of a form."""

PRICE = ("epsilon", "delta")


@dataclass(frozen=True)
class FormKind:
    """A kind of question.

    Parameters
    ----------
    name : str
        In addresses, and of the method.
    group : str
        ``"inference"``, ``"tables"``, ``"synthesis"`` or ``"models"``.
    before : str, optional
        The call of rows that takes the price, where the method does not.
    opens : bool
        Whether what may be left out is shown from the first on: most questions need some of it.
    """

    name: str
    group: str
    before: str | None = None
    opens: bool = False

    @property
    def method(self) -> Callable[..., Any]:
        """The method whose parameters the form asks for; it loads when a form is opened."""
        # What synthesis is asked by stands at the method that charges at once.
        name = "synthesize" if self.name == "synthesis" else self.name
        found: Callable[..., Any] = getattr(factory(self.before or "rows"), name)
        return found

    @cached_property
    def fields(self) -> tuple[FormField, ...]:
        """What the form asks for, beside a table, a condition and the price."""
        return fields_of(self.method, (*PRICE, *IN_PYTHON_ALONE.get(self.name, ())))

    @property
    def needed(self) -> tuple[FormField, ...]:
        """The fields that must be filled in."""
        return tuple(one for one in self.fields if one.required)

    @property
    def more(self) -> tuple[FormField, ...]:
        """Those that may be left as they are."""
        return tuple(one for one in self.fields if not one.required)

    def calls(
        self, table: str, where: str | None, price: Mapping[str, Any], given: Mapping[str, str]
    ) -> list[Any]:
        """The calls that make a question, as services take them.

        Parameters
        ----------
        table : str
        where : str, optional
            A condition on its rows.
        price : mapping
            ``epsilon``, and ``delta`` where it is said.
        given : mapping of str to str
            The form's fields.

        Raises
        ------
        ArgumentError
            A field is missing, or holds something else.
        """
        found: list[Any] = [["table", [table], {}]]
        if where:
            found.append(["filter", [where], {}])
        named = read_fields(self.fields, given)
        first = [named.pop(one.name) for one in self.needed]
        paid = {name: {"number": str(value)} for name, value in price.items()}
        if self.before is not None:
            return [*found, [self.before, [], paid], [self.name, first, named]]
        return [*found, [self.name, first, paid | named]]


MODELS = ("additive", "forest", "naive_bayes", "linear", "logistic")

KINDS: Mapping[str, FormKind] = {
    kind.name: kind
    for kind in (
        *(FormKind(n, "inference", "infer", opens=n == "difference") for n in INFERENCE),
        *(FormKind(name, "tables") for name in ("marginals", "hierarchy", "ranges")),
        FormKind("synthesis", "synthesis"),
        *(FormKind(name, "models", "learn") for name in MODELS),
    )
}
"""By name, in the order in which the page lists them."""


def form_of(ask: Sequence[Any]) -> tuple[FormKind, dict[str, str]] | None:
    """The form that asks a question, and what stands in its fields; None where no form asks it.

    Parameters
    ----------
    ask : list
        The calls that made it, from the page or from a program.

    Returns
    -------
    (FormKind, dict of str to str), or None
        The fields with ``table``, ``where``, ``epsilon`` and ``delta``.

    Examples
    --------
    >>> kind, filled = form_of(
    ...     [["table", ["visits"], {}], ["infer", [], {"epsilon": 0.5}], ["mean", ["cost"], {}]]
    ... )
    >>> kind.name, filled
    ('mean', {'table': 'visits', 'epsilon': '0.5', 'x': 'cost'})
    """
    match list(ask):
        case [["table", [str(table)], {}], *between, [str(name), list(args), dict(named)]]:
            kind = KINDS.get(name)
        case _:
            return None
    if kind is None:
        return None
    found = {"table": table}
    match between:
        case [["filter", [str(where)], {}], *rest]:
            found["where"] = where
            between = rest
    given = dict(named)
    if kind.before is not None:
        match between:
            case [[str(before), list(first), dict(paid)]] if before == kind.before:
                between = []
                given |= dict(zip(PRICE, first, strict=False)) | paid
            case _:
                return None
    given |= dict(zip((one.name for one in kind.fields), args, strict=False))
    known = {one.name: one for one in kind.fields}
    if between or len(args) > len(known) or set(given) - {*known, *PRICE}:
        return None
    for name in PRICE:
        if (price := given.pop(name, None)) is not None:
            text = decimal(price["number"] if isinstance(price, Mapping) else price)
            if text is None:
                return None
            found[name] = text
    for name, value in given.items():
        if value is None:
            continue
        text = written(known[name], value)
        if text is None:
            return None
        found[name] = text
    return kind, found


def kind_of(name: str) -> FormKind:
    """The kind of a name.

    Raises
    ------
    NotFoundError
        There is none.
    """
    found = KINDS.get(name)
    if found is None:
        raise NotFoundError("there is no form of this name")
    return found
