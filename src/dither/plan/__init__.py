"""The plan: what is asked, as a small typed tree, and the public facts it rests on.

Nothing here touches data, knows an engine or knows noise.

- ``schema``: what the data owner declares public.
- ``expressions``, ``relations``, ``aggregates``: the nodes; ``text``: expressions as SQL.
- ``facts``: which values an expression can have, from the public facts alone.
- ``job``, ``lower``: the exact integers that an engine is asked for, and by how much one unit can
  change them; ``recipes``: how answers follow from them.
"""
