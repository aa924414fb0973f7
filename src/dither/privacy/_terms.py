"""Parts and their counts, and the laws of one direction of a total."""

from __future__ import annotations

from typing import TypeGuard

import numpy as np

from dither.privacy.laws.gaussian import GaussianNoise, GaussianTerm
from dither.privacy.laws.laplace import LaplaceNoise, LaplaceTerm
from dither.privacy.laws.part import Part
from dither.privacy.laws.sampled.gaussians import SampledGaussiansTerm
from dither.privacy.laws.sampled.mechanism import Poisson
from dither.privacy.laws.term import Term

__all__ = ["Counted", "merged", "sampled_gaussian", "terms_of"]


Counted = tuple[tuple[Part, int], ...]

_KINDS = 11
"""Kinds of sampled Gaussians from which all are taken together: in doubles, at once."""


def merged(parts: Counted) -> Counted:
    """Equal parts counted together."""
    counts: dict[Part, int] = {}
    for part, count in parts:
        counts[part] = counts.get(part, 0) + count
    return tuple(counts.items())


def terms_of(parts: Counted, removal: bool) -> list[Term]:
    """The laws of a total of distinct parts, Gaussians and Laplaces taken together.

    So are sampled Gaussians of many kinds, such as a schedule of noise makes.
    """
    mu_squared, epsilons, counts = 0.0, [], []
    terms: list[Term] = []
    sampled = [(part, count) for part, count in parts if sampled_gaussian(part)]
    # Few kinds are sharper one by one, many would take too long.
    if len(sampled) > _KINDS:
        parts = tuple(pair for pair in parts if not sampled_gaussian(pair[0]))
        noise = [p.base.noise_multiplier for p, _ in sampled if isinstance(p.base, GaussianNoise)]
        rates, repeats = [p.rate for p, _ in sampled], [float(count) for _, count in sampled]
        columns = np.array(noise), np.array(rates), np.array(repeats)
        terms.append(SampledGaussiansTerm(*columns, removal))
    for part, count in parts:
        if isinstance(part, LaplaceNoise):
            # Of which there may be thousands: no term for each.
            epsilons.append(1 / part.noise_multiplier)
            counts.append(float(count))
            continue
        term = part.term(removal, count)
        if isinstance(term, GaussianTerm):
            # Variances of Gaussian losses add up: one law for all.
            mu_squared += term.mu_squared
        else:
            terms.append(term)
    if mu_squared > 0:
        terms.append(GaussianTerm(mu_squared))
    if epsilons:
        terms.append(LaplaceTerm(np.array(epsilons), np.array(counts)))
    return terms


def sampled_gaussian(part: Part) -> TypeGuard[Poisson]:
    """Of one unit."""
    return isinstance(part, Poisson) and isinstance(part.base, GaussianNoise) and part.size == 1
