"""Answers: what became of questions, and what was released."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from starlette.responses import Response

from dither._format import cost_text
from dither.policy._publishing import EVERYBODY
from dither.service._endpoints import (
    ANALYST,
    OWNER,
    PUBLIC,
    Asked,
    Endpoint,
    Field,
    NotFoundError,
    roles,
)
from dither.service.access._roles import Role
from dither.service.page._shown import PageView
from dither.service.page.asked._python import code
from dither.service.page.asked._results import FORMS, JobAnswer, file_of
from dither.service.page.asked._whiskers import panels
from dither.service.page.forms import form_of
from dither.service.routes import jobs as routes
from dither.service.routes.signing import secure
from dither.service.work._jobs import ReleaseJob, State
from dither.service.work._titles import plain

__all__ = ["VIEWS", "seen", "sql_of"]

ASKERS = roles(ANALYST, OWNER)

READERS = roles(PUBLIC, ANALYST, OWNER)

UNDER_WAY = (State.WAITING, State.QUEUED, State.RUNNING)

UNBEGUN = (State.WAITING, State.QUEUED)

LISTED = 100

LOOKED = 1000


def seen(asked: Asked, job_id: str) -> tuple[ReleaseJob, bool]:
    """A job that somebody may see, and whether it is theirs to decide on.

    Raises
    ------
    NotFoundError
        There is none for them; another's gives no sign that it exists.
    """
    found = asked.desk.jobs.get(job_id)
    decides = asked.who.role is Role.OWNER or (found is not None and found.person == asked.who.name)
    if found is not None and asked.who.role in ASKERS and decides:
        return found, True
    if found is None or found.state is not State.DONE or not asked.desk.shown(asked.who)(found):
        raise NotFoundError("there is no answer of this id")
    return found, False


def answers(asked: Asked) -> PageView:
    """Somebody's own questions, and released answers that they may see."""
    desk, who = asked.desk, asked.who
    asks = who.role in ASKERS
    owner = who.role is Role.OWNER
    own = desk.jobs.listed(None if owner else who.name, last=LISTED) if asks else []
    held = {one.id for one in own}
    done = desk.jobs.listed(state=State.DONE, last=LOOKED)
    others = [one for one in filter(desk.shown(who), done) if one.id not in held][:LISTED]
    return PageView(
        "answers/answers.html",
        {
            "asks": asks,
            "owner": owner,
            "waiting": [_row(one) for one in own if one.state is State.WAITING],
            "own": [_row(one) for one in own if one.state is not State.WAITING],
            "others": [_row(one) for one in others],
        },
    )


def _row(job: ReleaseJob) -> dict[str, Any]:
    price = job.draft.price
    return {
        "id": job.id,
        "question": job.draft.title,
        "words": sql_of(job, mine=False) is None,
        "person": job.person,
        "state": job.state.value,
        "state_key": job.state.value.replace(" ", "_"),
        "when": job.created,
        "cost": _cost(price) if job.state in UNDER_WAY or _charged(job) else None,
        "entry": job.entry,
        "stops": job.state in UNBEGUN,
        "replayed": job.replayed,
    }


def _charged(job: ReleaseJob) -> bool:
    """Whether something was spent: an answer that was there before costs nothing again."""
    return job.entry is not None and not job.replayed


def _cost(price: Mapping[str, Any]) -> str:
    if price.get("epsilon") is None:
        return f"ρ = {float(Fraction(price['rho'])):.4g}" if price.get("rho") else "–"
    return cost_text(Fraction(price["epsilon"]), Fraction(price.get("delta") or 0))


def _values(asked: Asked, job: ReleaseJob, mine: bool) -> dict[str, Any]:
    """What the view of one question shows, in whatever state it is."""
    desk = asked.desk
    found: dict[str, Any] = {
        "job": _row(job),
        "mine": mine,
        "under_way": job.state in UNDER_WAY,
        "runs": job.state is State.RUNNING,
        "progress": asked.hall.progress.get(job.id, 0.0),
        "failure": job.failure["message"] if job.failure else None,
        "protects": job.draft.price.get("protects"),
        "asked_sql": sql_of(job, mine),
        "again": _again(desk.name, job, mine),
        "asks": asked.who.role in ASKERS,
        "answer": None,
    }
    if job.state is not State.DONE:
        return found
    answer = JobAnswer(desk, job)
    found |= {
        "answer": answer,
        "table": answer.table(),
        "tables": answer.tables(),
        "text": answer.text(),
        "synthetic": answer.model == "json.gz",
        "picture": answer.picture(job.draft.title),
        "remarks": answer.remarks(),
        "covers": "intervals" + "_sampled" * answer.sampled,
        "certificate": answer.certificate.get("digest", ""),
        "panels": panels(answer.result) if answer.is_table else [],
        "forms": answer.forms(),
        "answered": answer.time,
        "level": f"{100 * answer.result.confidence:g} %" if answer.is_table else None,
        "link": f"{_origin(asked)}/p/{desk.name}/answers/{job.id}",
        "seen_by": _audience(asked),
        "python": None,
    }
    if asked.who.role in ASKERS and (mine or found["asked_sql"] or _plainly(job)):
        found["python"] = code(
            f"{_origin(asked)}/{desk.name}",
            job.draft.ask if mine or not found["asked_sql"] else [["sql", [job.draft.title], {}]],
            job.draft.requested,
            purpose=job.purpose if job.person == asked.who.name else None,
            token=job.token if job.person == asked.who.name and not job.replayed else None,
        )
        found["replays"] = job.person == asked.who.name and not job.replayed
    return found


def sql_of(job: ReleaseJob, mine: bool) -> str | None:
    """A question in SQL: as it was written for whoever wrote it, else as it was understood."""
    match job.draft.ask:
        case [["sql", [str(text)], _]]:
            return text if mine else job.draft.title
        case [["sql", *_], *_]:
            return job.draft.title
    # What Python's own words ask is SQL, too, where it has no price of its own.
    return job.draft.title if job.draft.requested.get("epsilon") is not None else None


def _plainly(job: ReleaseJob) -> bool:
    """Whether a form asks it, without a comment of its writer's."""
    found = form_of(job.draft.ask)
    return found is not None and plain(found[1].get("where", ""))


def _again(policy: str, job: ReleaseJob, mine: bool) -> str | None:
    """Where the same is asked anew, or changed; None where nobody but its writer can."""
    found = form_of(job.draft.ask)
    if found is not None:
        return f"/p/{policy}/ask/forms/{found[0].name}?from={job.id}"
    if mine or sql_of(job, mine) is not None:
        return f"/p/{policy}/ask?from={job.id}"
    return None


def _audience(asked: Asked) -> str:
    """Who else may open an answer, as a word of `answers.seen_by_...`."""
    if asked.desk.settings.public:
        return "anybody"
    everybody = asked.desk.session.policy.releases.audience == EVERYBODY
    return "analysts" if everybody else "asker"


def _origin(asked: Asked) -> str:
    url = asked.http.url
    return f"{'https' if secure(asked) else url.scheme}://{url.netloc}"


def answer(asked: Asked) -> PageView:
    """One question: how it goes, or what it was answered."""
    return PageView("answers/answer.html", _values(asked, *seen(asked, asked.path["id"])))


def state(asked: Asked) -> PageView:
    """The same, as a part of its view."""
    return PageView("answers/_state.html", _values(asked, *seen(asked, asked.path["id"])))


def cancel(asked: Asked) -> PageView | Response:
    """Take a question back; what was charged stays charged."""
    routes.stop(asked)
    if asked.body.get("listed"):
        return Response("", 200, {"hx-redirect": f"/p/{asked.desk.name}/answers"})
    return state(asked)


def file(asked: Asked) -> Response:
    """An answer as a file."""
    job, _ = seen(asked, asked.path["id"])
    form = asked.body.get("form", "csv")
    if job.state is not State.DONE or form not in FORMS:
        raise NotFoundError("this answer has no such file")
    answer, table = JobAnswer(asked.desk, job), asked.body.get("table", 1)
    found = file_of(answer, form, table)
    ending = "json" if form in ("certificate", "json") else form
    if form == "model":
        ending = answer.model or ""
    what = form if form in ("certificate", "model") else "answer"
    number = f"{job.entry}-{table}" if table > 1 else f"{job.entry}"
    name = f"{asked.desk.name}-{what}-{number}.{ending}"
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(found, headers=headers, media_type=FORMS[form])


VIEWS = [
    Endpoint("GET", "/answers", READERS, answers, "Questions and their answers.", lenient=True),
    Endpoint("GET", "/answers/{id}", READERS, answer, "One of them.", lenient=True),
    Endpoint("GET", "/answers/{id}/state", READERS, state, "How it goes, as a part."),
    Endpoint(
        "POST",
        "/answers/{id}/cancel",
        ASKERS,
        cancel,
        "Take a question back.",
        {"listed": Field("flag", "whether the list is shown again, and not the question")},
    ),
    Endpoint(
        "GET",
        "/answers/{id}/file",
        READERS,
        file,
        "An answer as a file.",
        {
            "form": Field("text", "csv, parquet, png, svg, model, certificate or json", most=20),
            "table": Field("whole", "which of its tables", most=1000),
        },
        lenient=True,
    ),
]
