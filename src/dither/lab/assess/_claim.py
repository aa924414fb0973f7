"""What a release is said to promise, who vouches for it, and what it lets an attack reach.

A guarantee compares tables that differ in one person. Somebody of the table and somebody of the
control change places: one is removed and the other added, so a guarantee for adding or removing one
counts twice here (`Neighbours`). With q the share of hits among those who were not in the table, an
attack then hits at most ``loss.tpr(q)`` of those who were.

Whether more hits than that can be luck is decided by all guesses together, by the theorem of one
run with many canaries (`dither.lab.audit`), for which no hits have to be independent. For adding or
removing one, each of the 2n people is a canary. The theorem is of fair coins, by which as many were
in as were not with probability at least 1/(2√n); the level is smaller by that factor. For replacing
one, somebody of the table and somebody of the control are a pair, by lot, and which of them was in
is a fair coin, so each of n pairs is a canary. A guess is made where just one of both is hit.

With delta > 0 the theorem is of a number r of guesses that is fixed, and here hits decide on it. Of
all outputs those with r guesses keep to the claim with a delta of their own, and these add up to
delta. If each r is accused where b + m·delta·M <= t, as the theorem has them, then accusations have
at most Σ Pr[r]·b + m·Σ delta_r·M <= 2t in all. So the level is halved.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from dither import _checks as check
from dither._format import cost_text
from dither._notebook import Shown
from dither.errors import ArgumentError, CertificateError
from dither.lab.assess._judged import Tally
from dither.lab.audit._one_run import chance_of_guesses
from dither.privacy import Loss, Neighbours, approximate, zcdp
from dither.privacy._promise import as_table_neighbours

__all__ = ["HeldClaim", "read_claim"]

_DELTA = "1e-6"
"""Where a certificate has no epsilon of its own, it is said at this delta."""
_WIDEST = 200
"""An epsilon that lets every share above e^-200 be 1, as every larger one does."""


@dataclass(frozen=True, slots=True, eq=False)
class HeldClaim(Shown):
    """A claim of epsilon.

    Attributes
    ----------
    epsilon, delta : float
    neighbours : Neighbours
    unit : str or None
        Who is protected, where a certificate says it.
    verified : str
        What was verified of its certificate; empty where there is none.
    of_these_rows : bool
        Whether the certificate is of what was assessed.
    losses : tuple of Loss
        For changing one person for another.
    """

    epsilon: float
    delta: float
    neighbours: Neighbours
    unit: str | None
    verified: str
    of_these_rows: bool
    losses: tuple[Loss, ...] = field(repr=False)

    def __str__(self) -> str:
        return self.words

    def __repr__(self) -> str:
        return self.words

    @property
    def words(self) -> str:
        """The claim in a line."""
        step = "added or removed" if self.neighbours is Neighbours.ADD_REMOVE else "replaced"
        return f"{cost_text(self.epsilon, self.delta)}, for one {self.unit or 'person'} {step}"

    def allowed(self, control: float) -> float:
        """The largest share of hits, where of others this share is hit."""
        return min(float(loss.tpr(control).upper) for loss in self.losses)

    def broken(self, tally: Tally, level: float, rng: np.random.Generator) -> bool:
        """Whether so many hits refute the claim, wrongly with probability at most ``level``.

        Parameters
        ----------
        tally : Tally
        level : float
        rng : numpy.random.Generator
            Of the lot by which people are paired, where one is replaced.
        """
        hits, others, many = tally.hits, tally.control_hits, tally.people
        if self.neighbours is Neighbours.ADD_REMOVE:
            level /= 2.0 * math.sqrt(many)
            canaries = 2 * many
            # Only who is hit is guessed; or everybody, and who is not was not in.
            guesses = [(hits + others, hits), (canaries, hits + many - others)]
        else:
            # Of those who are hit, so many are paired with somebody who is hit as well.
            both = int(rng.hypergeometric(others, many - others, hits)) if hits else 0
            canaries = many
            guesses = [(hits + others - 2 * both, hits - both)]
        level /= len(guesses) * (2.0 if self.delta > 0 else 1.0)
        return any(
            chance_of_guesses(canaries, r, v, self.epsilon, self.delta) <= level for r, v in guesses
        )


def read_claim(
    epsilon: Any,
    delta: Any,
    neighbours: Any,
    certificate: Any,
    ledger: Any,
    key: Any,
    answer: Any,
    release: object,
) -> HeldClaim | None:
    """The claim, its certificate verified; None where none is made.

    Raises
    ------
    ArgumentError
        For an epsilon that is none, or less than the certificate says.
    CertificateError
        The certificate does not hold.
    """
    relation = as_table_neighbours(neighbours)
    if certificate is None:
        for name, given in (("ledger", ledger), ("key", key), ("answer", answer)):
            if given is not None:
                raise ArgumentError(f"{name} goes with a certificate: give certificate=")
        if epsilon is None:
            if check.exact("delta", delta, least=0, below=1):
                raise ArgumentError("delta goes with an epsilon: give epsilon=")
            return None
        word = (check.positive("epsilon", epsilon), check.exact("delta", delta, least=0, below=1))
        losses = (_swapped(_bounded(*word, relation), relation),)
        return HeldClaim(float(word[0]), float(word[1]), relation, None, "", False, losses)
    text, of_these, body = _verified(certificate, ledger, key, answer, release)
    promise, loss = body["promise"], body["loss"]
    relation = as_table_neighbours(promise["neighbours"])
    eps, slack, rho, rest = (
        None if loss.get(name) is None else check.exact(name, loss[name])
        for name in ("epsilon", "delta", "rho", "rho_delta")
    )
    found: list[Loss] = []
    if eps is not None:
        found.append(_bounded(eps, slack or Fraction(0), relation))
    if rho is not None and not rest:
        found.append(zcdp(rho, neighbours=relation))
    if not found:
        raise CertificateError("the certificate states no loss to hold an attack against")
    if eps is None:
        slack = check.exact("delta", _DELTA)
        eps = check.exact("epsilon", float(found[0].epsilon(float(slack)).upper))
    if epsilon is not None and check.positive("epsilon", epsilon) < eps:
        raise ArgumentError(
            "epsilon must be at least what the certificate says was charged: leave it out, and the "
            "certificate says it"
        )
    return HeldClaim(
        float(eps), float(slack or 0), relation, str(promise["unit"]), text, of_these,
        tuple(_swapped(one, relation) for one in found),
    )  # fmt: skip


def _bounded(epsilon: Fraction, delta: Fraction, relation: Neighbours) -> Loss:
    return approximate(min(epsilon, Fraction(_WIDEST)), delta, neighbours=relation)


def _swapped(loss: Loss, relation: Neighbours) -> Loss:
    if relation is not Neighbours.ADD_REMOVE:
        return loss
    try:
        return loss.group(2)
    except ArgumentError:
        raise ArgumentError(
            "delta must be smaller: where two people change places, so large a delta promises "
            "nothing of either"
        ) from None


def _verified(
    certificate: Any, ledger: Any, key: Any, answer: Any, release: object
) -> tuple[str, bool, Mapping[str, Any]]:
    """What was verified, whether of these very rows, and the certificate's content."""
    from dither.session._verify import content_of, verify

    body = content_of(certificate)
    if answer is not None:
        found = verify(certificate, ledger, key=key, answer=answer)
        return found.text, False, body
    found = verify(certificate, ledger, key=key)
    try:
        return verify(certificate, ledger, key=key, answer=release).text, True, body
    except (CertificateError, ArgumentError):
        # Rows that were drawn from a synthetic model have no certificate of their own.
        return found.text, False, body
