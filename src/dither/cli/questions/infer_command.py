"""``dither infer``: estimates and tests of the people that a table's rows were sampled from."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dither._format import level
from dither.cli._endings import Failed
from dither.cli._files import check_targets
from dither.cli._options import (
    FILE,
    PAID,
    WholeNumbers,
    analyst_option,
    confidence,
    delta,
    epsilon,
    paid_options,
    plot,
    policy,
    private_table,
    purpose_option,
    refuse_given,
)
from dither.cli._terminal import say_saved, waiting
from dither.cli.questions._request import answered, check_free, keep_sources
from dither.cli.questions._written import read_written

if TYPE_CHECKING:
    from dither.inference.tables._question import InferencePreview

__all__ = ["infer"]


@click.command(
    short_help="Estimates, intervals and tests that count sampling and noise.",
    epilog="""\b
Examples:
  dither infer "mean(cost)" --epsilon 0.5
  dither infer "mean(cost)" --epsilon 0.5 --preview --sizes 100,1000
  dither infer "median(cost)" --epsilon 0.5
  dither infer "proportion(age >= 65)" --epsilon 0.5 \\
      --where "region = 'north'"
  dither infer "difference(cost, smoker)" --epsilon 0.5 --plot cost.png
  dither infer "independence(region, smoker)" --epsilon 0.5 --json
  dither infer "cost ~ age + C(region)" --epsilon 0.5
  dither infer "kaplan_meier(years, died, arm, bins=40)" --epsilon 1
  dither infer "rate(falls, years, arm, per=1000)" --epsilon 0.5
  dither infer "describe(arm)" --epsilon 2
""",
)
@click.argument("question")
@policy
@analyst_option
@purpose_option
@click.option("--table", "name", help="The table; needed where several are private.")
@click.option("--where", help="Rows that count: a condition, as after WHERE.")
@epsilon(required=True)
@delta
@confidence
@click.option("--preview", is_flag=True, help="What it would tell. Nothing is spent.")
@click.option("--explain", is_flag=True, help="What is measured, and at which price.")
@click.option(
    "--sizes",
    type=WholeNumbers(),
    default=(100, 1_000, 10_000),
    help="Numbers of people to preview.  [default: 100,1000,10000]",
)
@click.option(
    "--token", help="A name for the request: asked again by it, the same answer comes back, free."
)
@paid_options
@plot("the result, or the preview")
@click.option("--certificate", type=FILE, help="Write the certificate, for `dither verify`.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def infer(
    question: str,
    policy: Path,
    analyst: str | None,
    purpose: str | None,
    name: str | None,
    where: str | None,
    epsilon: Fraction,
    delta: Fraction | None,
    confidence: float,
    preview: bool,
    explain: bool,
    sizes: tuple[int, ...],
    token: str | None,
    picture: Path | None,
    certificate: Path | None,
    as_json: bool,
) -> None:
    """Say what the rows tell of the people that they were sampled from.

    QUESTION is mean(x), median(x), quantile(x, 0.9), proportion(condition), difference(x, group),
    independence(x, y), fit(x) or the formula of a linear regression, y ~ x + C(group); of a study
    kaplan_meier(time, event, arm), logrank_test(time, event, arm), rate(events, time, group),
    rate_ratio(events, time, group), standardised_rate(events, time, stratum, weights='a: 1, b: 2'),
    standardised_ratio(...), mantel_haenszel(outcome, exposed, stratum), f_oneway(x, group),
    weighted_mean(x, weight), weighted_proportion(condition, weight), weighted_total(x, weight),
    logistic_regression(y ~ x) and describe(group). Options follow as name=value: per=1000.
    Columns and conditions are written as in SQL; bounds and levels come from the policy. The
    ledger is charged once, and intervals count who was sampled as well as the noise.
    """
    import dither as dt
    from dither.inference.engine._result import interval_shown

    free = check_free(explain, preview)
    if not preview:
        refuse_given(("sizes",), "--preview")
    if free:
        refuse_given(("token", *PAID, "certificate"), "a release")
    check_targets(picture=picture, other=certificate)
    with (
        waiting("charging, then answering"),
        dt.open(policy, analyst=analyst, purpose=purpose) as session,
    ):
        keep_sources(session, policy, picture, certificate)
        rows = session.table(private_table(session, name))
        asked = read_written(
            question, (rows.filter(where) if where else rows).infer(epsilon, delta)
        )
        found = answered(
            asked,
            session,
            explain=explain,
            preview=partial(asked.preview, sizes, confidence=confidence) if preview else None,
            show=partial(_print_preview, picture=picture, as_json=as_json),
            as_json=as_json,
            token=token,
        )
    if found is None:
        return
    if as_json:
        click.echo(json.dumps(_result_json(found, confidence), indent=2, ensure_ascii=False))
    else:
        click.echo(found.summary())
        names = getattr(found, "names", None)
        if confidence != 0.95 and hasattr(found, "intervals"):
            click.echo(f"At {level(confidence)}:\n{_table_text(found.intervals(confidence))}")
        elif confidence != 0.95 and names is not None:
            click.echo(f"At {level(confidence)}:")
            ends = found.interval(confidence)
            for name, value, pair in zip(names, found.estimate, ends, strict=True):
                click.echo(f"  {name}: {interval_shown(value, *pair)}")
        elif confidence != 0.95 and hasattr(found, "interval"):
            ends = interval_shown(found.estimate, *found.interval(confidence))
            click.echo(f"At {level(confidence)}: {ends}.")
    for path, write in ((picture, found.plot), (certificate, found.certificate.save)):
        if path is not None:
            _save(path, write)


def _print_preview(found: InferencePreview, picture: Path | None, as_json: bool) -> None:
    if as_json:
        body = {
            "question": found.title,
            "epsilon": str(found.epsilon),
            "delta": str(found.delta),
            "confidence": found.confidence,
            "reaches": found.reaches,
            "needed": math.ceil(found.least_rows),
            "sizes": [
                {"people": n, "reach": _plain(width), "noise": _plain(share), "enough": enough}
                for n, width, share, enough in zip(
                    found.sizes, found.widths, found.shares, found.enough, strict=True
                )
            ],
        }
        click.echo(json.dumps(body, indent=2, ensure_ascii=False))
    else:
        click.echo(f"{found}\nNothing is spent.")
    if picture is not None:
        _save(picture, found.plot)


def _result_json(found: Any, confidence: float) -> dict[str, Any]:
    body: dict[str, Any] = {"question": found.title}
    pvalue = getattr(found, "pvalue", None)
    if hasattr(found, "intervals"):
        rows = found.intervals(confidence).to_dicts()
        body |= {
            "estimates": [
                {k: _plain(v) if isinstance(v, float) else v for k, v in one.items()}
                for one in rows
            ],
            "confidence": confidence,
        }
    elif getattr(found, "names", None) is not None:
        numbers = zip(
            found.names,
            *(v.tolist() for v in (found.estimate, found.se, found.se_sampling, found.pvalue)),
            found.interval(confidence).tolist(),
            strict=True,
        )
        linear = hasattr(found, "rsquared")
        several = hasattr(found, "params") or linear
        body |= {
            "coefficients" if several else "estimates": [
                {
                    "name": name,
                    "estimate": _plain(value),
                    "se": _plain(se),
                    "se_sampling": _plain(sampling),
                    "lower": _plain(lower),
                    "upper": _plain(upper),
                    "pvalue": p,
                }
                for name, value, se, sampling, p, (lower, upper) in numbers
            ],
            "confidence": confidence,
            "rows": found.rows,
            "null": found.null,
        }
        if linear:
            body["rsquared"] = found.rsquared
        pvalue = None
    elif hasattr(found, "interval"):
        lower, upper = found.interval(confidence)
        body |= {
            "estimate": _plain(found.estimate),
            "se": _plain(found.se),
            "se_sampling": _plain(found.se_sampling),
            "confidence": confidence,
            "lower": _plain(lower),
            "upper": _plain(upper),
            "rows": found.rows,
            "null": found.null,
        }
    else:
        body |= {
            "null": found.null,
            "statistic": found.statistic,
            "noise_share": _plain(found.noise_share),
        }
    if pvalue is not None:
        body["pvalue"] = pvalue
    return body | {
        "assumptions": list(found.assumptions),
        "notes": list(found.notes),
        "certificate": found.certificate.to_dict(),
    }


def _table_text(frame: Any) -> str:
    """Every number of a description with its ends, a line each."""
    from dither.inference.engine._result import interval_shown

    lines = []
    for column, of, measure, group, *ends in frame.iter_rows():
        what = ", ".join(part for part in (column, of, measure, group) if part)
        lines.append(f"  {what}: {interval_shown(*ends)}")
    return "\n".join(lines)


def _plain(value: float) -> float | None:
    """JSON knows no infinity."""
    return value if math.isfinite(value) else None


def _save(path: Path, write: Callable[[str], Any]) -> None:
    """Write one file; by now the result is printed, so a full disk loses nothing."""
    try:
        write(str(path))
    except OSError as error:
        raise Failed(
            f"{str(path)!r} could not be written: {error.strerror}. The result above stands."
        ) from error
    say_saved(path)
