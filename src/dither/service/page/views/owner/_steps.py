"""The six steps of a policy as the page shows them: questions, answers, and what follows."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from dither.plan.schema import Kind
from dither.policy._policy import Policy
from dither.policy.steps import QUESTIONS, STEPS, asked
from dither.policy.steps._questions import ROW, kinds_for, words
from dither.service._desk import Desk
from dither.service.page._texts import PageWords
from dither.service.page.views.owner._wrong import place_of
from dither.service.policies import PolicyDraft, biases_of, files_of
from dither.session._opened import DATASET, accounts_of

__all__ = ["step_shown"]

MOST_COLUMNS = 80
"""Columns of a table that stand as fields; of more, the text has all."""


def step_shown(desk: Desk, draft: PolicyDraft, step: str, say: PageWords) -> dict[str, Any]:
    """What a step shows of a draft.

    Parameters
    ----------
    desk : Desk
    draft : PolicyDraft
    step : str
        One of `STEPS`.
    say : PageWords
    """
    said = words(say.code)
    found: dict[str, Any] = {
        "step": step,
        "title": said[f"step_{step}"]["title"],
        "about": said[f"step_{step}"]["about"],
        "steps": [(one, said[f"step_{one}"]["title"]) for one in STEPS],
        "before": STEPS[max(STEPS.index(step) - 1, 0)],
        "after": STEPS[min(STEPS.index(step) + 1, len(STEPS) - 1)],
        "readable": draft.held is not None,
    }
    if draft.held is None:
        return found
    makers = {
        "schema": _schema,
        "unit": _unit,
        "columns": _columns,
        "limits": _limits,
        "budget": _budget,
        "people": _people,
    }
    return found | makers[step](desk, draft, say)


def _asked(
    draft: PolicyDraft,
    key: str,
    named: Sequence[str],
    say: PageWords,
    at: str = "",
    options: Sequence[tuple[str, str]] = (),
) -> dict[str, Any]:
    """A question with its words, its answer and what it is sent as."""
    assert draft.held is not None
    question, said = QUESTIONS[key], words(say.code)[key]
    of = dict(zip(("table", "column"), named, strict=False))
    if question.of == "analyst":
        of = {"analyst": named[0]}
    value = asked(draft.held, key, *named)
    offered = list(options) or [(one, one) for one in question.options]
    if value and offered and value not in {one for one, _ in offered}:
        offered.append((value, value))
    return {
        "id": f"{key}{at}",
        "key": key,
        "named": json.dumps(list(named)),
        "place": place_of(key, named),
        "label": said["question"].format(**of) if of else said["question"],
        "meaning": said["meaning"],
        "left_out": said["left_out"],
        "value": value,
        "empty": "",
        "options": offered,
        "choice": bool(offered) or question.kind == "choice",
        "number": question.kind in ("whole", "number"),
    }


def _schema(desk: Desk, draft: PolicyDraft, say: PageWords) -> dict[str, Any]:
    assert draft.held is not None
    tables, used = [], set()
    for i, name in enumerate(draft.tables):
        kinds = kinds_for(draft.held, name, draft.stored.get(name, {}))
        source = asked(draft.held, "source", name)
        used.add(source)
        stored = draft.stored.get(name, {})
        columns = [
            {
                "name": column,
                "stored": None if (kind := stored.get(column)) is None else kind.value,
                "field": _asked(draft, "type", (name, column), say, f"-{i}-{j}"),
            }
            for j, column in enumerate([*stored, *(c for c in kinds if c not in stored)])
        ]
        tables.append(
            {
                "name": name,
                "source": source,
                "columns": columns[:MOST_COLUMNS],
                "more": len(columns) - MOST_COLUMNS,
                "new": name not in desk.session.policy.tables,
            }
        )
    said = words(say.code)["source"]
    files = [one for one in files_of(desk.path.parent) if one not in used]
    return {"tables": tables, "files": files, "source": said}


def _unit(desk: Desk, draft: PolicyDraft, say: PageWords) -> dict[str, Any]:
    assert draft.held is not None
    tables = []
    for i, name in enumerate(draft.tables):
        columns = [one for one, kind in draft.stored.get(name, {}).items() if kind is not None]
        offered = [(one, one) for one in columns] + [(ROW, say("policy.by_row"))]
        unit = _asked(draft, "unit", (name,), say, f"-{i}", offered)
        unit["empty"] = say("policy.by_row_unsaid")
        tables.append(
            {
                "name": name,
                "fields": [unit, _asked(draft, "units_at_least", (name,), say, f"-{i}")],
                "whom": _whom(draft.policy, name),
            }
        )
    return {"tables": tables}


def _whom(policy: Policy | None, table: str) -> str | None:
    unit = None if policy is None else policy.units.get(table)
    return None if policy is None or unit is None else policy.promise(unit.name).describe()


def _columns(desk: Desk, draft: PolicyDraft, say: PageWords) -> dict[str, Any]:
    assert draft.held is not None
    tables = []
    for i, name in enumerate(draft.tables):
        unit = asked(draft.held, "unit", name)
        kinds = {
            column: kind
            for column, kind in kinds_for(draft.held, name, draft.stored.get(name, {})).items()
            if column != unit
        }
        columns = []
        for j, (column, kind) in enumerate(list(kinds.items())[:MOST_COLUMNS]):
            keys = [
                key
                for key, one in QUESTIONS.items()
                if one.step == "columns" and (not one.kinds or kind.value in one.kinds)
            ]
            fields = [_asked(draft, key, (name, column), say, f"-{i}-{j}") for key in keys]
            for one in fields:
                if one["key"] == "nullable":
                    one["options"] = [("false", say("policy.never_missing"))]
            told = _column_told(draft, name, column, kind, say)
            columns.append({"name": column, "kind": kind.value, "fields": fields, "told": told})
        tables.append({"name": name, "columns": columns, "more": len(kinds) - MOST_COLUMNS})
    said = words(say.code)
    named = [key for key, one in QUESTIONS.items() if one.step == "columns"]
    meanings = [(say("policy.field_" + key), said[key]["meaning"]) for key in named]
    return {"tables": tables, "meanings": meanings}


def _column_told(draft: PolicyDraft, table: str, column: str, kind: Kind, say: PageWords) -> str:
    """What is declared of a column, as what becomes of its values."""
    assert draft.held is not None
    said = words(say.code)
    bounds = draft.held.get(QUESTIONS["bounds"].path(table, column))
    measure = asked(draft.held, "measure", table, column)
    if isinstance(bounds, list) and len(bounds) == 2:
        low, high = (f"{one} {measure}".strip() for one in bounds)
        return say("policy.told_bounds", low=low, high=high)
    values = draft.held.get(QUESTIONS["values"].path(table, column))
    if isinstance(values, list):
        return say("policy.told_values", count=len(values))
    if kind is Kind.BOOLEAN:
        return say("policy.told_boolean")
    return said["values" if kind is Kind.TEXT else "bounds"]["left_out"]


def _limits(desk: Desk, draft: PolicyDraft, say: PageWords) -> dict[str, Any]:
    assert draft.held is not None
    tables = []
    for i, name in enumerate(draft.tables):
        whose = asked(draft.held, "unit", name)
        own = bool(whose) and whose != ROW
        keys = ("max_rows", "max_groups") if own else ()
        rows = biases_of(*draft.state, name) if own and draft.policy is not None else []
        tables.append(
            {
                "name": name,
                "fields": [_asked(draft, key, (name,), say, f"-{i}") for key in keys],
                "rows": rows,
            }
        )
    return {"tables": tables}


def _budget(desk: Desk, draft: PolicyDraft, say: PageWords) -> dict[str, Any]:
    assert draft.held is not None
    fields = [_asked(draft, key, (), say) for key in ("epsilon", "delta")]
    tables: list[dict[str, Any]] = []
    blocks = False
    for i, name in enumerate(draft.tables):
        kinds = kinds_for(draft.held, name, draft.stored.get(name, {}))
        dates = [(c, c) for c, kind in kinds.items() if kind in (Kind.DATE, Kind.TIMESTAMP)]
        held = asked(draft.held, "block_column", name)
        blocks = blocks or bool(held)
        if not dates and not held:
            tables.append({"name": name, "fields": []})
            continue
        column = _asked(draft, "block_column", (name,), say, f"-{i}", dates)
        column["empty"] = say("policy.no_blocks")
        every = [_asked(draft, "block_every", (name,), say, f"-{i}")] if held else []
        for one in every:
            one["options"] = [(o, say("policy.every_" + o)) for o, _ in one["options"]]
        tables.append({"name": name, "fields": [column, *every]})
    lifetime = [_asked(draft, "lifetime", (), say)] if blocks else []
    return {
        "fields": [*fields, *lifetime],
        "tables": tables,
        "costs": _costs(draft.policy, say),
        "amended": _amended(desk),
    }


def _costs(policy: Policy | None, say: PageWords) -> list[str]:
    """The budget in words: what a stretch of time, or all of it, costs one of whom it protects."""
    if policy is None:
        return []
    told = []
    for unit in dict.fromkeys(one.name for one in policy.units.values()):
        cap = policy.budget
        shown = {"unit": unit, "epsilon": _plain(cap.epsilon)}
        calendar = policy.calendars.get(unit)
        if calendar is None:
            cost = say("policy.costs_once", **shown)
        elif calendar.every is not None:
            every = say("policy.every_" + calendar.every)
            cost = say("policy.costs_every", every=every, **shown)
        else:
            cost = say("policy.costs_block", **shown)
        where = "data" if calendar is None else "block"
        bet = "which" if policy.replace_one else where
        told.append(f"{cost} {say('policy.bet_' + bet, chance=chance(cap))}")
        if calendar is not None and policy.lifetime is not None:
            most = policy.lifetime
            cost = say("policy.costs_lifetime", unit=unit, epsilon=_plain(most.epsilon))
            bet = "which" if policy.replace_one else "data"
            told.append(f"{cost} {say('policy.bet_' + bet, chance=chance(most))}")
        elif calendar is not None:
            told.append(say("policy.costs_no_lifetime", unit=unit))
    return told


def _plain(number: Fraction | None) -> str:
    return "–" if number is None else f"{float(number):g}"


def chance(cap: Any) -> str:
    """How often a bet at even chances can be right at most, in percent, rounded up.

    Which of two neighbouring tables there is, both as likely, is guessed right with a chance of at
    most (e^epsilon + delta) / (e^epsilon + 1): the region of the two errors allows no more
    (Kairouz, Oh and Viswanath, "The Composition Theorem for Differential Privacy", 2015).

    >>> from dither.accounting import BudgetFilter
    >>> chance(BudgetFilter(1)), chance(BudgetFilter("0.1", "1e-6")), chance(BudgetFilter(50))
    ('73.2', '52.5', '100')
    """
    if cap.epsilon is None or cap.epsilon > 30:
        return "100"
    odds = math.exp(float(cap.epsilon))
    # The last of a double's digits is far below what is added before it is rounded up.
    most = (odds + float(cap.delta)) / (odds + 1)
    digits = 10 if most < 0.999 else 1000
    return f"{min(math.ceil(most * 100 * digits + 1e-6) / digits, 100):g}"


def _amended(desk: Desk) -> list[dict[str, str]]:
    """Accounts that the ledger has: what they have spent, and the command that changes their caps.

    No file changes these.
    """
    session, ledger = desk.session, desk.session.policy.ledger
    known = set(session.ledger.accounts())
    found = []
    for promise in accounts_of(session.policy):
        account = f"{DATASET}:{promise.unit}"
        if account not in known:
            continue
        place = ledger.name if isinstance(ledger, Path) else desk.path.name
        command = shlex.join(["dither", "ledger", "amend", place, "--account", account])
        balance = session.ledger.balance(account)
        found.append(
            {
                "account": account,
                "spent": _plain(balance.spent.epsilon),
                "command": f"{command} --epsilon … --reason …",
            }
        )
    return found


def _people(desk: Desk, draft: PolicyDraft, say: PageWords) -> dict[str, Any]:
    assert draft.held is not None
    quotas: list[str] = []
    for path in (("quotas", "analysts"), ("analysts",)):
        body = draft.held.get(path)
        quotas += list(body) if isinstance(body, Mapping) else []
    listed = [one for one in desk.people.listed() if not one["disabled"]]
    roles = {str(one["name"]): str(one["role"]) for one in listed}
    names = [name for name, role in roles.items() if role == "analyst"]
    known = [] if draft.policy is None else draft.policy.quotas.known
    shown = []
    for i, name in enumerate(dict.fromkeys([*names, *quotas])):
        shown.append(
            {
                "name": name,
                "role": roles.get(name),
                "field": _asked(draft, "quota", (name,), say, f"-{i}"),
                "shut": bool(known) and name not in known,
            }
        )
    said = words(say.code)["quota"]
    return {"analysts": shown, "quota": said, "alone": not names}
