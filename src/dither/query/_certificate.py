"""What a certificate records of a query's plan: each measurement, its mechanism and its loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dither.policy._canonical import form
from dither.policy._facts import Fact
from dither.privacy import Charge
from dither.query._explain import UNACCOUNTED, blocks_text, explain, protects
from dither.query._noise import NoisePlan
from dither.session._certificate import MeasurementRecord, charge_dict

__all__ = ["measurement_record", "measurements_of"]


def measurement_record(
    noise_plan: NoisePlan, sql: str, facts: Sequence[Fact] = ()
) -> MeasurementRecord:
    """The record of a plan with its noise, and of the learned facts that it rests on."""
    plan = noise_plan.plan
    allocation = noise_plan.allocation
    keys = None if allocation is None else allocation.keys
    return MeasurementRecord(
        measurements_of(noise_plan),
        {
            "sql": sql,
            "plan": explain(plan, noise_plan, [fact.text for fact in facts]).to_dict(),
            "protects": protects(plan),
            **blocks_text(plan),
            "unaccounted": UNACCOUNTED,
        },
        rows=noise_plan.rows,
        max_groups=plan.job.max_groups,
        max_rows=plan.job.max_rows,
        keys=None if keys is None else keys.parameters(),
        beside={
            **({"max_groups_of_each_set": plan.job.each} if plan.job.sets else {}),
            **({"steps": noise_plan.steps} if noise_plan.steps > 1 else {}),
        },
    )


def measurements_of(noise_plan: NoisePlan) -> list[dict[str, Any]]:
    """What a certificate says of each measurement: its sensitivity, mechanism and loss."""
    found = []
    plan = noise_plan.plan
    for i, (measurement, bound) in enumerate(
        zip(plan.job.measurements, plan.sensitivities, strict=True)
    ):
        entry: dict[str, Any] = {"measures": form(measurement)}
        levels = noise_plan.trees[i].levels if i in noise_plan.trees else 1
        entry |= {
            "l1": str(bound.l1 * levels),
            "l2_squared": str(bound.l2_squared * levels),
            "levels": levels,
        }
        noise = noise_plan.noises[i] or noise_plan.choices.get(i)
        if noise is None or noise_plan.allocation is None:
            entry |= {"mechanism": "none", "loss": charge_dict(Charge())}
        else:
            share = noise_plan.allocation[str(i)]
            entry |= {**noise.parameters(), "loss": charge_dict(share.charge)}
        found.append(entry)
    return found
