"""Who may do what with a ledger on PostgreSQL: roles that ask, roles that read, and the owner.

Whoever is no member of the role that owns the tables adds entries through the functions of
`_functions` alone: they have no right to write, and where somebody grants it, a trigger refuses
what another role inserts. Everything that the functions do is done in Python as well before they
are called, so that a refusal says what a refusal of a file says; what they wrote is then read back
and held against what was expected of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import Column, Connection, Numeric, Table, Text, select, text

from dither._postgres import quoted
from dither.errors import (
    BudgetError,
    DitherError,
    LedgerError,
    PromiseError,
    TokenError,
)
from dither.ledger._entries import Record, canonical
from dither.ledger.stores._functions import CALLED, HELPERS, REFUSALS
from dither.ledger.stores._store import asking_role, metadata

if TYPE_CHECKING:
    from dither.privacy.accounts._budget import BudgetFilter

__all__ = [
    "append_by_function",
    "askers",
    "caps",
    "fault_of_functions",
    "granted",
    "in_dollars",
    "keep_caps",
    "make_functions",
    "refusal",
]

_TEXT = Text(collation="C")

# What each pair of caps admits, in whole units: the cap in rho is no fraction, and is found in
# Python, rounded down.
caps = Table(
    "caps",
    metadata,
    Column("epsilon", _TEXT, primary_key=True),
    Column("delta", _TEXT, primary_key=True),
    Column("most_epsilon", Numeric, nullable=False),
    Column("most_delta", Numeric, nullable=False),
    Column("most_rho", Numeric, nullable=False),
    Column("most_rho_delta", Numeric, nullable=False),
)

# Which roles may ask, and which quotas each of them is charged to.
askers = Table(
    "askers",
    metadata,
    Column("role", _TEXT, primary_key=True),
    Column("quota", _TEXT, primary_key=True),
)

_AMOUNTS = ("epsilon", "delta", "rho", "rho_delta")
_CALLS = {
    "charge": "append_charge(%(accounts)s, %(epsilon)s, %(delta)s, %(rho)s, %(rho_delta)s, "
    "%(promise)s, %(tables)s, %(note)s, %(blocks)s, %(token)s, %(request)s, %(reservation)s)",
    "reserve": "append_reserve(%(accounts)s, %(epsilon)s, %(delta)s, %(rho)s, %(rho_delta)s, "
    "%(promise)s, %(note)s, %(blocks)s, %(until)s, %(holder)s)",
    "answer": "append_answer(%(charge)s, %(answer)s)",
}

_FUNCTIONS = text("""
SELECT p.proname, p.prosrc,
    CASE WHEN p.proname = ANY (:called)
    THEN p.proconfig = ARRAY['search_path=pg_catalog, pg_temp'] AND p.prosecdef
    ELSE p.proconfig IS NULL AND NOT p.prosecdef END
    AND p.proowner = (
        SELECT c.relowner FROM pg_class AS c
        WHERE c.relname = 'entries' AND c.relnamespace = n.oid AND c.relkind = 'r'
    )
    AND NOT EXISTS (
        SELECT FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a
        WHERE a.grantee = 0 OR a.grantee <> p.proowner AND p.proname <> ALL (:called)
    ) AS plain
FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
WHERE n.nspname = :schema AND p.prorettype <> 'trigger'::regtype
""")


def in_dollars(body: str) -> str:
    """The body of a function as SQL writes it, whatever the name of a schema in it holds."""
    tag = "dither"
    while f"${tag}$" in body:
        tag += "_"
    return f"${tag}${body}${tag}$"


def _run(connection: Connection, statement: str) -> None:
    connection.exec_driver_sql(statement.replace("%", "%%"))


def make_functions(connection: Connection, of: str) -> None:
    """Make the functions in a schema whose tables are there; nobody may call them yet."""
    for name, (arguments, result, language, body) in {**HELPERS, **CALLED}.items():
        returns = f"RETURNS {result} " if result else ""
        # What these call runs as they do, and is quicker where it sets nothing itself.
        runs = "SECURITY DEFINER SET search_path = pg_catalog, pg_temp " if name in CALLED else ""
        made = (
            f"CREATE OR REPLACE FUNCTION {{schema}}.{name}({arguments}) {returns}"
            f"LANGUAGE {language} {runs}AS "
        )
        made, body = made.replace("{schema}", of), body.replace("{schema}", of)
        _run(connection, made + in_dollars(body))
    _run(connection, f"REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {of} FROM PUBLIC")


def keep_caps(connection: Connection, budget: Mapping[str, Any]) -> None:
    """Keep what caps admit, for the functions to hold charges against."""
    from sqlalchemy.dialects.postgresql import insert as insert_new

    from dither.ledger._block_budget import limits
    from dither.ledger.quotas._caps import UnlockedQuota, read_quota
    from dither.privacy.accounts._budget import BudgetFilter

    pairs: list[Mapping[str, Any] | None]
    if "unlock" in budget:
        quota = read_quota(budget)
        assert isinstance(quota, UnlockedQuota)
        pairs = [quota.part(n).to_dict() for n in range(1, quota.parts + 1)]
    else:
        pairs = [budget, *(budget.get(name) for name in ("most", "each", "lifetime"))]
    rows = [
        {
            "epsilon": pair["epsilon"],
            "delta": pair["delta"],
            **dict(zip(_MOST, limits(BudgetFilter.from_dict(dict(pair))), strict=True)),
        }
        for pair in pairs
        if pair is not None and pair.keys() == {"epsilon", "delta"}
    ]
    if rows:
        connection.execute(insert_new(caps).on_conflict_do_nothing(), rows)


_MOST = ("most_epsilon", "most_delta", "most_rho", "most_rho_delta")


def fault_of_functions(connection: Connection, schema: str) -> str | None:
    """Whether the functions and the caps that they read are as they were made."""
    from dither.ledger._block_budget import limits
    from dither.privacy.accounts._budget import BudgetFilter

    made, of = {**HELPERS, **CALLED}, quoted(schema)
    expected = sorted(
        (name, body.replace("{schema}", of), True) for name, (*_, body) in made.items()
    )
    found = connection.execute(_FUNCTIONS, {"schema": schema, "called": list(CALLED)})
    if sorted(map(tuple, found)) != expected:
        return "the functions through which it is charged were changed, or are open to everybody"
    for row in connection.execute(select(caps)):
        held: BudgetFilter = BudgetFilter.from_dict({"epsilon": row.epsilon, "delta": row.delta})
        if tuple(int(getattr(row, name)) for name in _MOST) != limits(held):
            return "what its functions take for the caps is not what the caps are"
    return None


def append_by_function(
    connection: Connection, record: Record, read: str | None, reservation: str | None = None
) -> int:
    """Have the server write the next entry; its number.

    Parameters
    ----------
    connection : Connection
        Of a transaction of a role that asks.
    record : Record
        The entry as it should be; its time will be the server's.
    read : str or None
        The blocks that a charge reads, in canonical JSON.
    reservation : str, optional
        The id of the reservation that it uses: who knows it may.

    Raises
    ------
    LedgerError
        It is an entry that the owner alone writes.
    """
    from dither.ledger.quotas._reserved import is_reservation

    if record.kind not in _CALLS:
        raise LedgerError(
            f"the role {asking_role(connection)!r} may ask and charge, and nothing else: accounts "
            "are opened, and caps changed, by the role that owns the ledger's tables "
            "(`dither ledger open`, `dither ledger amend`); nothing was changed"
        )
    if record.kind == "answer":
        given: dict[str, Any] = {"charge": record.answers, "answer": record.answer}
    elif record.kind == "reserve":
        kept = json.loads(str(record.budget))
        given = dict(zip(_AMOUNTS, kept["reserve"], strict=True))
        given |= {name: kept[name] for name in ("accounts", "until", "holder")}
        read = None if kept["read"] is None else canonical(kept["read"])
        given |= {"promise": record.promise, "note": record.note, "blocks": read}
    else:
        names = (*_AMOUNTS, "promise", "tables", "note")
        given = {name: getattr(record, name) for name in (*names, "token", "request")}
        accounts = [name for name in record.totals_after() if not is_reservation(name)]
        given |= {"accounts": accounts, "blocks": read, "reservation": reservation}
    call = _CALLS[record.kind]
    schema = quoted(connection.get_execution_options()["schema_translate_map"][None])
    of = schema.replace("%", "%%")
    return int(
        connection.exec_driver_sql(f"SELECT f.number FROM {of}.{call} AS f", given).scalar_one()
    )


def refusal(state: str, name: str) -> DitherError | None:
    """What a function's refusal is called; ``None`` where it is none of theirs.

    Python refuses the same before it asks the server, and says more of it.
    """
    kinds = {code: kind for kind, code in REFUSALS.items()}
    match kinds.get(state):
        case "budget":
            return BudgetError(f"an account of {name} cannot bear this charge; nothing was spent")
        case "promise":
            return PromiseError(
                f"the server of {name} refused a charge that does not agree with its accounts and "
                "tables on one unit, one neighbour relation and one owner of each row; nothing was "
                "charged"
            )
        case "token":
            return TokenError("this token was used for another request: take a new one")
        case "closed":
            return LedgerError(
                f"an account of this charge is not open in {name}, and the role that owns the "
                "ledger's tables opens it (`dither ledger open`); or it has caps that the server's "
                "functions do not know; nothing was charged"
            )
        case "reservation":
            return LedgerError(
                f"no open reservation of {name} has this id, or it is for other accounts or "
                "blocks; nothing was charged"
            )
        case "caller":
            return LedgerError(
                f"the role that {name} is asked as may not write this. A role that asks charges "
                "the data set's account of the unit and its own quotas, no others, and answers its "
                "own charges: the owner says with `dither ledger grants LEDGER ROLE --analyst "
                "NAME` whose quotas a role's are; nothing was written"
            )
        case "malformed":
            return LedgerError(
                f"the server of {name} refused what is no charge and no answer; nothing was written"
            )
    return None


def granted(schema: str, role: str, kind: str, quotas: Sequence[str], owner: str) -> list[str]:
    """The statements of `dither.ledger._roles.grants`, which says more of them."""
    of, whom = quoted(schema), quoted(role)
    written = [
        f"REVOKE ALL ON ALL TABLES IN SCHEMA {of} FROM {whom};",
        f"REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {of} FROM {whom};",
        f"REVOKE ALL ON SCHEMA {of} FROM {whom};",
        f"REVOKE {quoted(owner)} FROM {whom};",
        f"DELETE FROM {of}.askers WHERE role = {_literal(role)};",
    ]
    if kind == "owner":
        return [*written, f"GRANT {quoted(owner)} TO {whom};"]
    written += [
        f"GRANT USAGE ON SCHEMA {of} TO {whom};",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {of} TO {whom};",
    ]
    if kind == "asker":
        called = ", ".join(f"{of}.{name}" for name in CALLED)
        rows = ", ".join(f"({_literal(role)}, {_literal(quota)})" for quota in quotas)
        written += [
            f"GRANT EXECUTE ON FUNCTION {called} TO {whom};",
            f"INSERT INTO {of}.askers VALUES {rows};",
        ]
    return written


def _literal(given: str) -> str:
    doubled = given.replace("'", "''")
    return f"'{doubled}'"
