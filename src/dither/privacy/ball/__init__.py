"""Losses in ball arithmetic: every number carries a proven bound of its own error [1]_.

The engines of `dither.privacy.profile` work in doubles and charge for their rounding. Where that
leaves an interval wide, what is here computes with as many digits as the question needs. It is
slower, so it comes last.

References
----------
.. [1] Johansson, "Arb: efficient arbitrary-precision midpoint-radius interval arithmetic", IEEE
   Transactions on Computers 2017; now part of FLINT.
"""
