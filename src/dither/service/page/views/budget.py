"""The budget: what is spent, by whom and on what; what is kept; how long it lasts; what waits."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from dither._format import loss_text
from dither._format import remaining as left_text
from dither.ledger import Balance, Entry
from dither.ledger._states import charge_of
from dither.ledger.pictures._rules import rule_of
from dither.ledger.quotas._caps import ReservedQuota
from dither.ledger.quotas._forecast import whole_caps
from dither.ledger.quotas._reserved import is_reservation
from dither.privacy import Charge
from dither.privacy.accounts._budget import BudgetFilter
from dither.service._endpoints import ANALYST, AUDITOR, OWNER, Asked, Endpoint, Field, roles
from dither.service.access._roles import Role
from dither.service.page._heat import heat_of
from dither.service.page._shown import PageView
from dither.service.page._spending import outlook, spending_of
from dither.service.routes import owning
from dither.service.work._jobs import ReleaseJob, State

__all__ = ["VIEWS", "charge_text", "question_of"]

READERS = roles(ANALYST, OWNER, AUDITOR)

PACES = (7, 30, 90)
"""Days that a forecast may look back over."""

NEWEST = 1000
"""Questions and charges that spending is told apart for."""

LISTED = 10


def charge_text(charge: Charge) -> str:
    """What was charged, rounded up, by what it is stated in.

    >>> charge_text(Charge.approximate(Fraction(1, 2), Fraction(1, 10**6)))
    'ε 0.5, δ 1e-6'
    """
    if charge.epsilon is not None:
        main, delta = f"ε {loss_text(charge.epsilon)}", charge.delta
    else:
        main, delta = f"ρ {loss_text(charge.rho)}", charge.rho_delta
    return f"{main}, δ {loss_text(delta)}" if delta else main


def question_of(entry: Entry) -> str:
    """What a charge was for, as whoever charged noted it."""
    said = entry.note.get("query")
    if isinstance(said, str):
        return said
    kept = {name: value for name, value in entry.note.items() if name != "policy"}
    return ", ".join(f"{name}: {value}" for name, value in kept.items())


def budget(asked: Asked) -> PageView:
    """Everything that whoever asks may see of it."""
    balances = _balances(asked)
    whole = [one for one in balances if not one.quota]
    history = None if asked.who.role is Role.ANALYST else spending_of(asked.desk)
    values = {
        "accounts": [_account(one) for one in whole],
        "pictures": [heat_of(one, history, _now(one)) for one in whole],
        "quotas": [_account(one) for one in balances if one.quota and not is_reservation(one.name)],
        "kept": list(filter(None, map(_reservation, balances))),
        "spent": _spent(asked),
        "newest": NEWEST,
        "listed": LISTED,
        "paces": PACES,
        **_ahead(asked, balances, 30),
        **_waiting(asked),
    }
    return PageView("budget/budget.html", values)


def ahead(asked: Asked) -> PageView:
    """The forecast, at the rate of so many days."""
    return PageView(
        "budget/_ahead.html", _ahead(asked, _balances(asked), asked.body.get("days") or 30)
    )


def _balances(asked: Asked) -> list[Balance]:
    """Those that the API shows: to analysts theirs, to others every account of the ledger."""
    book = asked.desk.session.ledger
    if asked.who.role is Role.ANALYST:
        return list(asked.desk.session_of(asked.who).balance())
    known = book.accounts()
    found = [book.balance(name) for name in known]
    if asked.who.role is Role.OWNER:
        # What was never charged has no account yet.
        mine = asked.desk.session_of(asked.who).balance()
        found += [one for one in mine if one.name not in known]
    return sorted(found, key=lambda one: (one.quota, one.name))


def _now(balance: Balance) -> dt.date:
    """The day that the ledger is at: by its own clock, which never goes back."""
    today = dt.datetime.now(dt.UTC).date()
    if balance.paced is None:
        return today
    return max(today, dt.datetime.fromisoformat(balance.paced[1]).date())


def _account(balance: Balance) -> dict[str, Any]:
    caps = whole_caps(balance)
    gone = balance.spent + balance.reserved
    rule = None if caps is None else rule_of(caps, [gone])
    share = None if caps is None or rule is None else rule.share(caps, gone)
    # A meter is a picture: it may be off by less than it shows.
    full = 1.0 if caps is not None and share is None else min(float(share or 0), 1.0)
    return {
        "name": _whose(balance),
        "whom": balance.promise.describe(),
        "about": balance.describe(),
        "spent": charge_text(balance.spent),
        "reserved": None if balance.reserved.free else charge_text(balance.reserved),
        "left": balance.remaining.describe(),
        "anew": balance.blocks is not None or caps is None,
        "full": None if caps is None else full,
        "cap": _cap_text(balance),
    }


def _whose(balance: Balance) -> str:
    """Whose account it is, without the unit that all its accounts have: ``analyst:ann``."""
    return balance.name.removesuffix(f":{balance.promise.unit}")


def _cap_text(balance: Balance) -> str:
    caps, own = whole_caps(balance), balance.caps
    if caps is None:
        return "" if isinstance(own, BudgetFilter) else own.describe()
    delta = f", δ {left_text(caps.delta)}" if caps.delta else ""
    return f"ε {left_text(caps.epsilon)}{delta}"


def _reservation(balance: Balance) -> dict[str, Any] | None:
    """One that is open still; who holds it is known to nobody here."""
    caps = balance.caps
    if not isinstance(caps, ReservedQuota):
        return None
    until = dt.datetime.fromisoformat(caps.until)
    if until <= dt.datetime.now(dt.UTC):
        return None
    return {
        "kept": charge_text(charge_of(caps.amount)),
        "used": charge_text(balance.spent),
        "until": until,
        "accounts": [name.removesuffix(f":{balance.promise.unit}") for name in caps.accounts],
    }


# --- a look ahead ---------------------------------------------------------------------------------


def _ahead(asked: Asked, balances: Sequence[Balance], days: int) -> dict[str, Any]:
    """At the rate of the last days, or, of those who see no ledger, at that since the first."""
    whole = [one for one in balances if not is_reservation(one.name)]
    found: list[dict[str, Any]] = []
    if asked.who.role is Role.ANALYST:
        for one in whole:
            seen = one.forecast()
            kind = "on" if seen.until else _renewed(one) or "told"
            found.append(
                {"name": _whose(one), "kind": kind, "day": seen.until, "said": seen.reason}
            )
        return {"forecasts": found, "days": None}
    history = spending_of(asked.desk)
    for one in whole:
        now, first = _now(one), history.first(one.name)
        # An account younger than that is held to its own days.
        passed = days if first is None else max(min(days, (now - first).days + 1), 1)
        recent = history.spent(one.name, now, now - dt.timedelta(days=passed - 1))
        look = outlook(one, recent, passed, now)
        rate = None if look.rate is None else f"{look.symbol} {loss_text(look.rate)}"
        found.append(
            {
                "name": _whose(one),
                "kind": _renewed(one) or look.kind,
                "day": look.day,
                "rate": rate,
                "passed": passed,
                "known": first is not None,
            }
        )
    return {"forecasts": found, "days": days}


def _renewed(balance: Balance) -> str | None:
    """Why there is no day on which all of it is spent."""
    if whole_caps(balance) is not None:
        return None
    return "anew" if balance.blocks is None or balance.window is not None else "blocks"


# --- who spent what -------------------------------------------------------------------------------


def _spent(asked: Asked) -> dict[str, Any]:
    """By person and tables, and the newest charges one by one."""
    role = asked.who.role
    person = None if role is Role.OWNER else asked.who.name
    jobs: dict[int, ReleaseJob] = {}
    if role is not Role.AUDITOR:
        for job in asked.desk.jobs.listed(person, last=NEWEST):
            if job.entry is not None and not job.replayed:
                jobs.setdefault(job.entry, job)
    if role is Role.ANALYST:
        rows = [
            _row(job.person, job.draft.title, job.draft.tables, _job_charge(job), number, job)
            for number, job in sorted(jobs.items(), reverse=True)
        ]
    else:
        entries = asked.desk.session.ledger.entries(limit=NEWEST, kind="charge")
        rows = []
        for one in reversed(entries):
            job_of = jobs.get(one.number)
            assert one.charge is not None
            rows.append(
                _row(
                    _who(one) if job_of is None else job_of.person,
                    question_of(one),
                    () if job_of is None else job_of.draft.tables,
                    one.charge,
                    one.number,
                    job_of,
                    one.time,
                )
            )
    totals: dict[tuple[str, str], list[Any]] = {}
    for row in rows:
        held = totals.setdefault((row["who"], row["on"]), [0, Charge()])
        held[0] += 1
        held[1] = held[1] + row["charge"]
    by = [
        {"who": who, "on": on, "number": number, "cost": charge_text(total)}
        for (who, on), (number, total) in sorted(totals.items())
    ]
    return {"by": by, "rows": rows[:LISTED]}


def _row(
    who: str,
    what: str,
    tables: Sequence[str],
    charge: Charge,
    entry: int,
    job: Any,
    time: Any = None,
) -> dict[str, Any]:
    bare = Charge(charge.epsilon, charge.delta, charge.rho, charge.rho_delta)
    return {
        "who": who,
        "what": what,
        "on": ", ".join(tables),
        "charge": bare,
        "cost": charge_text(bare),
        "entry": entry,
        "time": time or dt.datetime.fromtimestamp(job.created, dt.UTC),
        "coarse": time is not None,
    }


def _who(entry: Entry) -> str:
    """The analyst whose quota bore it, where there is one."""
    mine = (one.split(":") for one in entry.accounts if one.startswith("analyst:"))
    return next((parts[1] for parts in mine), "")


def _job_charge(job: ReleaseJob) -> Charge:
    price = job.draft.price
    epsilon, rho = (
        None if price.get(n) is None else Fraction(price[n]) for n in ("epsilon", "rho")
    )
    return Charge(epsilon, Fraction(price.get("delta") or 0), rho)


# --- what waits for the owner ---------------------------------------------------------------------


def _waiting(asked: Asked) -> dict[str, Any]:
    if asked.who.role is not Role.OWNER:
        person = asked.who.name if asked.who.role is Role.ANALYST else None
        mine = asked.desk.jobs.listed(person, State.WAITING) if person else []
        return {"waiting": [_asked_for(one) for one in mine]}
    found = asked.desk.jobs.listed(state=State.WAITING, last=NEWEST)
    return {"waiting": [_asked_for(one) for one in found]}


def _asked_for(job: ReleaseJob) -> dict[str, Any]:
    price = job.draft.price
    return {
        "id": job.id,
        "who": job.person,
        "purpose": job.purpose,
        "what": job.draft.title,
        "cost": charge_text(_job_charge(job)),
        "protects": price.get("protects", ""),
        "blocks": price.get("blocks"),
        "accounts": price.get("accounts", []),
        "tables": list(job.draft.tables),
        "digest": job.draft.digest,
        "since": dt.datetime.fromtimestamp(job.created, dt.UTC),
    }


def approvals(asked: Asked) -> PageView:
    """What waits, as a part of the view."""
    return PageView("budget/_waiting.html", {"decided": None, **_waiting(asked)})


def decide(asked: Asked) -> PageView:
    """Approve a question or decline it, by the digest that was shown."""
    found = owning.decide(asked)
    decided = {"who": found["person"], "what": found["question"], "yes": asked.body["approve"]}
    return PageView("budget/_waiting.html", {"decided": decided, **_waiting(asked)})


VIEWS = [
    Endpoint("GET", "/budget", READERS, budget, "What is spent, and what is left."),
    Endpoint(
        "GET",
        "/budget/ahead",
        READERS,
        ahead,
        "The forecast, at another rate.",
        {"days": Field("whole", "how many days back", most=3650)},
    ),
    Endpoint("GET", "/budget/waiting", roles(OWNER), approvals, "What waits for a decision."),
    Endpoint(
        "POST",
        "/budget/waiting/{id}",
        roles(OWNER),
        decide,
        "Approve a question, or decline it.",
        {
            "approve": Field("flag", "whether it may run", True),
            "digest": Field("text", "of the request that is decided on", True, 128),
        },
    ),
]
