"""The plan: what is asked, as a small typed tree, and the public facts it rests on.

Nothing here touches data, knows an engine or knows noise.

- ``schema``: what the data owner declares public.
- ``expressions``, ``relations``, ``aggregates``: the nodes; ``text``: expressions as SQL.
- ``facts``: which values an expression can have, which columns and how many rows of a unit a
  relation has, from the public facts alone.
- ``job``, ``lowering``: the exact integers that an engine is asked for, by how much one unit can
  change them (``lowering.sensitivity``), and how answers follow from them (``lowering.recipes``).
"""
