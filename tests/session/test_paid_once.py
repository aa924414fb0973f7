"""What was released to an audience is given to it again for nothing; a token is its asker's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dither as dt
from dither.errors import ArgumentError, PolicyError, TokenError
from query.query_data import policy

TEXT = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
BOTH = {"ana": {"epsilon": 4}, "ben": {"epsilon": 4}}


def opened(folder: Path, frames: Any, analyst: str | None = None, **changes: Any) -> dt.Session:
    """A session of one of two analysts, or of a policy without any."""
    made = policy(folder, **({} if analyst is None else {"analysts": BOTH}), **changes)
    return dt.open(made, sources=frames, analyst=analyst)


def spent(session: dt.Session) -> list[Any]:
    """By account."""
    return [account.spent.epsilon or 0 for account in session.balance()]


def test_the_same_question_is_replayed_for_nothing(tmp_path: Path, frames: Any) -> None:
    """However it is written; with its date and its certificate; and only where that is asked."""
    with opened(tmp_path, frames) as session:
        question = session.sql(TEXT)
        assert question.published(1) == []
        first = question.release(1, reuse=True)
        assert not first.replayed
        before = spent(session)
        again = session.sql(TEXT.lower()).release(1, reuse=True)
        assert again.replayed
        assert again.frame.equals(first.frame)
        assert again.certificate == first.certificate
        assert "replayed: the answer of" in again.notes[-1]
        assert spent(session) == before
        second = question.release(1)
        assert not second.replayed
        found = question.published(1)
        assert [
            one.frame.equals(two.frame) for one, two in zip(found, (first, second), strict=True)
        ]
        assert question.release(1, reuse=True).frame.equals(second.frame)


def test_another_question_price_or_policy_is_another_answer(tmp_path: Path, frames: Any) -> None:
    """Nothing is replayed that was not asked for in every part."""
    with opened(tmp_path, frames) as session:
        question = session.sql(TEXT)
        question.release("0.1")
        others = [
            question.published("0.2"),
            question.published("0.1", confidence=0.9),
            question.published("0.1", max_rows=2),
            question.limit(2).published("0.1"),
            session.sql(TEXT.replace("n FROM", "k FROM")).published("0.1"),
        ]
        assert others == [[]] * 5
        assert len(question.published("0.1")) == 1
    with opened(tmp_path, frames, visits={"max_join_rows": 7}) as session:
        assert session.sql(TEXT).published("0.1") == []


def test_every_kind_of_question_is_paid_once(session: Any) -> None:
    """Also inference, models, synthetic tables and counts."""
    table = session.table("visits")
    some = table.select("region", "age")
    for question in (
        table.infer(epsilon="0.1").mean("cost"),
        some.marginals([["region"]], epsilon="0.1"),
        table.learn(epsilon="0.1").naive_bayes("smoker ~ age + region"),
    ):
        assert question.published() == []
        question.release(reuse=True)
        before = spent(session)
        question.release(reuse=True)
        assert len(question.published()) == 1
        assert spent(session) == before


def test_an_answer_is_for_its_audience(tmp_path: Path, frames: Any) -> None:
    """The asker alone, or everybody: as the policy said when it was released."""
    for audience, shared in (("asker", False), ("everybody", True)):
        folder = tmp_path / audience
        folder.mkdir()
        with opened(folder, frames, "ana", releases={"audience": audience}) as ana:
            first = ana.sql(TEXT).release(1)
            assert len(ana.sql(TEXT).published(1)) == 1
        with opened(folder, frames, "ben", releases={"audience": audience}) as ben:
            assert len(ben.sql(TEXT).published(1)) == shared
            found = ben.sql(TEXT).release(1, reuse=True)
            assert (found.replayed, found.frame.equals(first.frame)) == (shared, shared)
            assert (spent(ben)[1] == 0) == shared
    # A policy that opens answers later does not open those of before.
    with opened(tmp_path / "asker", frames, "ben", releases={"audience": "everybody"}) as ben:
        assert ben.sql(TEXT).published(1) == []


def test_a_policy_may_reuse_answers_unless_told_otherwise(tmp_path: Path, frames: Any) -> None:
    """A token and a word of one's own go before it; both at once are refused."""
    with opened(tmp_path, frames, releases={"reuse": True}) as session:
        question = session.sql(TEXT)
        question.release(1)
        assert question.release(1).replayed
        assert not question.release(1, reuse=False).replayed
        assert not question.release(1, token="a").replayed
        before = spent(session)
        with pytest.raises(ArgumentError, match="a token or reuse=True, not both"):
            question.release(1, token="b", reuse=True)
        with pytest.raises(ArgumentError, match="reuse must be True or False"):
            question.release(1, reuse=1)  # type: ignore[arg-type]
        assert spent(session) == before
    for wrong in ({"audience": "nobody"}, {"reuse": 1}, {"audiences": "asker"}):
        with pytest.raises(PolicyError, match="releases"):
            opened(tmp_path, frames, releases=wrong)


def test_a_token_is_its_askers_own(tmp_path: Path, frames: Any) -> None:
    """Another's gives no sign that it exists, whatever was asked under it."""
    with opened(tmp_path, frames, "ana") as ana:
        first = ana.sql(TEXT).release(1, token="monday")
        (entry,) = (e for e in ana.ledger.entries() if e.token is not None)
        assert entry.token != "monday"
    with opened(tmp_path, frames, "ben") as ben:
        # The same question, and another one: ben's own answers, as if ana had asked nothing.
        found = ben.sql(TEXT).release(1, token="monday")
        assert not found.replayed
        assert ben.sql(TEXT).release(1, token="monday").frame.equals(found.frame)
        with pytest.raises(TokenError, match="used for another request"):
            ben.sql("SELECT COUNT(*) AS n FROM visits").release(1, token="monday")
        # Not by the name that the ledger has for it, either.
        assert not ben.sql(TEXT).release("0.5", token=entry.token).replayed
    with opened(tmp_path, frames, "ana") as ana:
        again = ana.sql(TEXT).release(1, token="monday")
        assert (again.replayed, again.frame.equals(first.frame)) == (True, True)


def test_a_token_of_before_is_still_its_askers(tmp_path: Path, frames: Any, monkeypatch) -> None:
    """Ledgers have such tokens as they were chosen: the asker's are replayed, others' unseen."""
    from dither.session._opened import OpenedPolicy

    with opened(tmp_path, frames, "ana") as ana, monkeypatch.context() as patch:
        patch.setattr(OpenedPolicy, "_own", lambda _self, _promise, token: token)
        first = ana.sql(TEXT).release(1, token="monday")
    with opened(tmp_path, frames, "ana") as ana:
        assert ana.sql(TEXT).release(1, token="monday").frame.equals(first.frame)
        with pytest.raises(TokenError, match="used for another request"):
            ana.sql(TEXT).release(2, token="monday")
    with opened(tmp_path, frames, "ben") as ben:
        assert not ben.sql(TEXT).release(1, token="monday").replayed
