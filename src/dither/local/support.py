"""Channels whose counts say how many reports support each value: one estimator for all of them."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from dither.local.channel import Channel, Counts, Shares

__all__ = ["SupportChannel"]


class SupportChannel(Channel):
    """A report supports its holder's value with chance p and any other with chance q.

    With s the share of reports that support a value, f̂ = (s - q)/(p - q) is unbiased; given the
    users' values its variance is (f·p(1-p) + (1-f)·q(1-q))/(n (p-q)²).

    Source. Wang, Blocki, Li and Jha, USENIX Security 2017 ("pure" protocols).
    """

    @property
    @abstractmethod
    def support(self) -> tuple[float, float] | tuple[Shares, Shares]:
        """p and q: of every value alike, or of each value, shape (k,)."""

    @property
    def largest_step(self) -> Shares:
        """1/(p - q)."""
        p, q = self.support
        return np.full(len(self.domain), 1 / (p - q))

    def decode(self, counts: Counts, n: int) -> Shares:
        """(share of supports - q)/(p - q)."""
        p, q = self.support
        return np.asarray((counts / n - q) / (p - q))

    def noise_variance(self, frequencies: Shares) -> Shares:
        """(f·p(1-p) + (1-f)·q(1-q))/(p-q)², for one report."""
        (p, q), f = self.support, frequencies
        return np.asarray((f * p * (1 - p) + (1 - f) * q * (1 - q)) / (p - q) ** 2)
