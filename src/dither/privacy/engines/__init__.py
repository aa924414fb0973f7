"""The engines that turn a loss into numbers, from the sharpest to the most general.

Closed forms, sums on a lattice, a contour integral of the generating function, a grid; and the same
in ball arithmetic, where every number carries a proven bound of its own error [1]_. Engines in
doubles charge for their rounding. Where that leaves an interval wide, balls compute with as many
digits as the question needs; they are slower, so they come last. `choice` chooses.

References
----------
.. [1] Johansson, "Arb: efficient arbitrary-precision midpoint-radius interval arithmetic", IEEE
   Transactions on Computers 2017; now part of FLINT.
"""
