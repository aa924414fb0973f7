"""Sessions, questions, previews and releases: the only room where data meets noise.

- ``policy``, ``declared``, ``reading``, ``sources``, ``drafting``: the owner's document.
- ``session``, ``builder``, ``asking``, ``question``, ``public_keys``: the analyst's doors.
- ``pricing``, ``explain``, ``preview``: what can be said before anything is spent or read.
- ``noising``, ``estimates``, ``answers``, ``release``, ``certificate``: what happens
  after the charge.
- ``wording``, ``tree``, ``tables``: how it is said.
"""
