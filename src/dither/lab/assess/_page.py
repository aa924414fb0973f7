"""The page of an assessment: one file of HTML, without scripts and without anything from outside.

It holds names of columns, counts and shares; whatever was given is escaped.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from dither._format import count_text, number_text, percent
from dither._format import level as level_text
from dither.lab.assess._judged import Said, TriedAttack
from dither.lab.assess._phrases import attack_name, difference_text
from dither.lab.assess._sayings import claim_words

if TYPE_CHECKING:
    from dither.lab.assess._result import Assessment, Criterion

__all__ = ["cards", "page"]

_KINDS = {
    Said.FOUND: "found",
    Said.BEYOND: "beyond",
    Said.NOT_SEEN: "unseen",
    Said.CANNOT_SAY: "silent",
}

STYLE = """
:root { color-scheme: light dark; --ink: #1d2126; --muted: #5b636c; --hair: #dfe3e7;
  --ground: #fff; --soft: #f4f6f8; --in: #b8430b; --out: #77818b; --found: #b8430b;
  --beyond: #8d1230; --unseen: #0a6190; --silent: #5f6770; --mark: #1d2126; --on: #fff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7eaed; --muted: #a5aeb7; --hair: #353b42;
  --ground: #14171a; --soft: #1e2328; --in: #ff9a5c; --out: #8a949e; --found: #ff9a5c;
  --beyond: #ff8fa6; --unseen: #7cc4ee; --silent: #b3bbc3; --mark: #e7eaed; --on: #14171a; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 17px/1.55 system-ui, -apple-system, "Segoe UI", "Helvetica Neue", Arial, sans-serif; }
main { max-width: 980px; margin: 0 auto; padding: 44px 24px 72px; }
h1 { font-size: 32px; line-height: 1.2; margin: 0 0 14px; letter-spacing: -.01em; }
h2 { font-size: 23px; line-height: 1.3; margin: 0 0 4px; }
h3 { font-size: 17px; margin: 26px 0 6px; }
p { margin: 10px 0; max-width: 70ch; }
.lead { font-size: 20px; line-height: 1.45; }
.muted, .why { color: var(--muted); }
section { border-top: 1px solid var(--hair); margin-top: 40px; padding-top: 30px; }
.cards { display: grid; grid-template-columns: repeat(3, 1fr); gap: 16px; margin: 26px 0 0; }
.card { background: var(--soft); border-radius: 8px; padding: 16px 18px; border-top: 4px solid; }
.card h3 { margin: 0 0 8px; font-size: 18px; }
.card p { font-size: 15px; margin: 10px 0 0; }
.found { border-color: var(--found); } .beyond { border-color: var(--beyond); }
.unseen { border-color: var(--unseen); } .silent { border-color: var(--silent); }
.tag { display: inline-block; font-size: 14px; font-weight: 650; padding: 1px 10px;
  border-radius: 99px; color: var(--on); white-space: nowrap; }
.tag.found { background: var(--found); } .tag.beyond { background: var(--beyond); }
.tag.unseen { background: var(--unseen); } .tag.silent { background: var(--silent); }
.key { font-size: 14px; color: var(--muted); display: flex; flex-wrap: wrap; gap: 4px 20px;
  margin: 14px 0 2px; padding: 0; list-style: none; }
.key i { display: inline-block; width: 22px; height: 9px; border-radius: 2px; margin-right: 7px; }
.tried { list-style: none; margin: 10px 0 0; padding: 0; }
.tried li { display: grid; grid-template-columns: minmax(0, 1fr) 270px 12.4em; gap: 2px 18px;
  align-items: center; padding: 11px 0; border-bottom: 1px solid var(--hair); font-size: 15px; }
.name { font-weight: 600; overflow-wrap: anywhere; }
.why { grid-column: 1 / 2; font-size: 14px; line-height: 1.45; }
.bars { grid-row: span 2; }
.bar { display: grid; grid-template-columns: 1fr 4.4em; gap: 8px; align-items: center; }
.bar b { font-weight: 500; font-size: 13px; text-align: right;
  font-variant-numeric: tabular-nums; white-space: nowrap; }
.track { position: relative; height: 11px; background: var(--soft); border-radius: 2px; }
.fill { position: absolute; inset: 0 auto 0 0; border-radius: 2px; }
.in { background: var(--in); } .out { background: var(--out); }
.reach { position: absolute; top: 4px; height: 3px; background: var(--mark); opacity: .75; }
.most { position: absolute; top: -2px; bottom: -2px; border-left: 2px dashed var(--unseen); }
.told { grid-row: span 2; font-size: 14px; text-align: right; }
.told .more { display: block; color: var(--muted); margin-top: 3px;
  font-variant-numeric: tabular-nums; }
details { margin: 14px 0 0; } summary { cursor: pointer; color: var(--muted); font-size: 15px; }
ul.plain { padding-left: 1.15em; max-width: 70ch; } ul.plain li { margin: 7px 0; }
.box { background: var(--soft); border-radius: 8px; padding: 4px 18px; margin: 20px 0 0;
  border-left: 4px solid var(--unseen); }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: 14px; width: 100%;
  margin: 14px 0 0; }
th, td { text-align: right; padding: 6px 0 6px 14px; border-bottom: 1px solid var(--hair);
  font-variant-numeric: tabular-nums; vertical-align: top; white-space: nowrap; }
th { color: var(--muted); font-weight: 600; }
th:first-child, td:first-child { text-align: left; padding-left: 0; white-space: normal;
  min-width: 15em; }
dl { max-width: 70ch; } dt { font-weight: 600; margin-top: 10px; } dd { margin: 0; }
footer { color: var(--muted); font-size: 14px; border-top: 1px solid var(--hair);
  margin-top: 44px; padding-top: 14px; }
@media (max-width: 760px) { body { font-size: 16px; } main { padding: 28px 18px 48px; }
  h1 { font-size: 27px; } .lead { font-size: 18px; } .cards { grid-template-columns: 1fr; }
  .tried li { grid-template-columns: minmax(0, 1fr); } .bars, .told { grid-row: auto; }
  .told { text-align: left; } .told .more { display: inline; margin-left: 10px; }
  .why { grid-column: auto; } }
@media print { details > * { display: block; } li, .card { break-inside: avoid; } }
"""

_WORDS = (
    (
        "Attack",
        "A way of telling something about one person from the release. Each says yes or no of a "
        "person, or guesses a value. A hit is a yes, or a right guess.",
    ),
    (
        "Control",
        "People who could have been in the table and were not. What an attack tells of them, it "
        "tells of anybody: it is what data are for, and harms nobody by their having taken part. "
        "What it tells of people in the table beyond that is due to their row.",
    ),
    (
        "Difference",
        "Hits of 100 people who were in the table, less hits of 100 who were not.",
    ),
    (
        "Interval",
        "What a share or a difference may be, given that the people attacked are some of many. Of "
        "differences it stands in brackets. Those of all differences of a page hold together, and "
        "so do those of all shares.",
    ),
    (
        "Top tenth, top half",
        "Some attacks score people instead of saying yes or no. They say yes to the tenth, or the "
        "half, of all people attacked who score highest, whoever ties with the last included.",
    ),
    (
        "Found, not seen, cannot be said",
        "Found: the difference is beyond luck. Not seen: it is not, and the same attack does find "
        "people in the table itself. Cannot be said: nothing that was tried could have decided. "
        "Beyond the claim: found, and so often that no release of the claimed ε could let it be.",
    ),
    (
        "Epsilon (ε)",
        "The strength of a guarantee of differential privacy: it bounds every attack, also those "
        "that nobody has thought of. The smaller, the less any release can tell of one person.",
    ),
)


def page(of: Assessment, title: str) -> str:
    """The whole page."""
    said = html.escape
    people = (
        f"{count_text(of.people[2], 'person', 'people')} of the table, and as many who were not in "
        "it, were"
        if of.with_control
        else f"{count_text(of.people[2], 'person', 'people')} of the table were"
    )
    each = " and each row is of another person"
    about = (
        f"{people} attacked in {count_text(len(of.tried), 'way')}. With "
        f"{level_text(of.confidence)} confidence nothing is said to be found that is not there, if "
        f"those who were not in it were held back by lot{'' if of.unit else each}."
        if of.with_control
        else f"{people} attacked in {count_text(len(of.tried), 'way')}, without a control."
    )
    parts = [
        f"<h1>{said(title)}</h1><p class=lead>{said(of.conclusion)}</p>",
        f"<p class=muted>{said(about)}</p>",
        cards(of, bare=True),
        _claim(of),
        *(_section(of, c) for c in of.criteria),
        f"<section><h2>What this cannot say</h2>{_list(of.limits)}</section>",
        f"<section><h2>For whoever checks it</h2>{_list(of.notes)}{_table(of)}</section>",
        "<section><h2>Words</h2><dl>",
        *(f"<dt>{said(word)}</dt><dd>{said(text)}</dd>" for word, text in _WORDS),
        "</dl></section>",
        "<footer>This page holds names of columns and counts, and no value of any table. The "
        "counts are exact and protected by nothing: show it to whom you would show them.</footer>",
    ]
    return (
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width, initial-scale=1">'
        f"<title>{said(title)}</title><style>{STYLE}</style></head>"
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )


def cards(of: Assessment, *, bare: bool = False) -> str:
    """The three answers side by side."""
    shown = "".join(
        f"<div class='card {_KINDS[c.said]}'><h3>{html.escape(c.name.capitalize())}</h3>"
        f"{_tag(c.said)}<p>{html.escape(c.answer)}</p></div>"
        for c in of.criteria
    )
    if bare:
        return f"<div class=cards>{shown}</div>"
    plain = "".join(
        f"<p><b>{html.escape(c.name.capitalize())}: {html.escape(str(c.said))}.</b> "
        f"{html.escape(c.answer)}</p>"
        for c in of.criteria
    )
    return f"<div><p>{html.escape(of.conclusion)}</p>{plain}</div>"


def _tag(said: Said) -> str:
    return f"<span class='tag {_KINDS[said]}'>{html.escape(str(said))}</span>"


def _list(texts: Iterable[str]) -> str:
    return f"<ul class=plain>{''.join(f'<li>{html.escape(t)}</li>' for t in texts)}</ul>"


def _claim(of: Assessment) -> str:
    if of.claim is None:
        return ""
    return f"<div class=box><p>{html.escape(claim_words(of.claim))}</p></div>"


def _section(of: Assessment, one: Criterion) -> str:
    spoken = [t for t in one.tried if t.said is not Said.CANNOT_SAY]
    silent = [t for t in one.tried if t.said is Said.CANNOT_SAY]
    if not spoken and len(silent) <= _FEW:
        spoken, silent = silent, []
    parts = [
        f"<section><h2>{html.escape(one.name.capitalize())} {_tag(one.said)}</h2>",
        f"<p class=muted>{html.escape(one.question)}</p><p>{html.escape(one.answer)}</p>",
    ]
    if one.tried:
        parts.append(_key(of))
    parts.append(_items(spoken))
    if silent:
        many = count_text(len(silent), "attack that decides nothing", "attacks that decide nothing")
        parts.append(f"<details><summary>{html.escape(many)}</summary>{_items(silent)}</details>")
    return "".join([*parts, "</section>"])


_FEW = 4
"""Attacks that are shown although none of them says anything."""


def _key(of: Assessment) -> str:
    shown = "<li><i class=in></i>hits of 100 people who were in the table</li>"
    if of.with_control:
        shown += "<li><i class=out></i>of 100 who were not</li><li>thin line: interval</li>"
    if of.claim is not None:
        shown += f"<li>dashed: the most that ε = {number_text(of.claim.epsilon)} allows</li>"
    return f"<ul class=key>{shown}</ul>"


def _items(tried: Sequence[TriedAttack]) -> str:
    items: list[str] = []
    told: set[str] = set()
    for t in tried:
        # An attacker who says yes to several shares of people is explained once.
        about = f"{t.about} {_why(t)}".strip()
        about, known = "" if about in told else about, about
        told.add(known)
        more = difference_text(t)
        note = f"<span class=more>{html.escape(more)}</span>" if t.more is not None else ""
        bars = "".join(
            _bar(share, low, high, kind, allowed)
            for share, low, high, kind, allowed in (
                (t.share, t.low_share, t.high_share, "in", t.allowed),
                (t.control, t.low_control, t.high_control, "out", None),
            )
            if share is not None
        )
        items.append(
            f"<li><span class=name>{html.escape(attack_name(t))}</span>"
            f"<span class=bars>{bars}</span><span class=told>{_tag(t.said)}{note}</span>"
            f"<span class=why>{html.escape(about)}</span></li>"
        )
    return f"<ul class=tried>{''.join(items)}</ul>" if items else ""


def _why(one: TriedAttack) -> str:
    """The reason, where the tag and the bars do not say it."""
    return one.why if one.said is Said.CANNOT_SAY else ""


def _bar(
    share: float, low: float | None, high: float | None, kind: str, allowed: float | None
) -> str:
    reach = ""
    if low is not None and high is not None:
        wide = 100 * (high - low)
        reach = f"<span class=reach style='left:{100 * low:.1f}%;width:{wide:.1f}%'></span>"
    most = ""
    if allowed is not None and allowed < 1.0:
        most = f"<span class=most style='left:{100 * allowed:.1f}%'></span>"
    return (
        f"<span class=bar><span class=track><span class='fill {kind}' "
        f"style='width:{100 * share:.1f}%'></span>{reach}{most}</span>"
        f"<b>{percent(share)}</b></span>"
    )


def _table(of: Assessment) -> str:
    """All counts, for whoever computes anew."""
    heads = ["attack", "hits", "control", "of", "chance", "points", "on the table", "ε at least"]
    if of.claim is not None:
        heads.append("allowed")
    parts = [f"<th>{html.escape(h)}</th>" for h in heads]
    rows = []
    for c in of.criteria:
        rows.append(f"<tr><td colspan={len(heads)}><b>{html.escape(c.name)}</b></td></tr>")
        for t in c.tried:
            bare = "–"
            if t.bare is not None and t.bare_control is not None:
                bare = f"{percent(t.bare)} / {percent(t.bare_control)}"
            cells = [
                attack_name(t),
                "–" if t.hits is None else f"{t.hits:,}",
                "–" if t.control_hits is None else f"{t.control_hits:,}",
                f"{t.people:,}",
                "–" if t.chance is None else f"{t.chance:.2g}",
                difference_text(t),
                bare,
                "–" if not t.epsilon else f"{math.floor(100 * t.epsilon) / 100:.2f}",
            ]
            if of.claim is not None:
                cells.append("–" if t.allowed is None else percent(t.allowed, turn=math.ceil))
            rows.append("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in cells) + "</tr>")
    return (
        f"<div class=scroll><table><thead><tr>{''.join(parts)}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
        "<p class=muted>Chance: of so large a difference by luck, for each attack by itself. On "
        "the table: shares of hits of people who were in it and of others, if it were published as "
        "it is. ε at least: of replacing one person, for the near ends of both intervals.</p>"
    )
