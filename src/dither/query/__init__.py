"""Sessions, questions, previews and releases: the only room where data meets noise.

- ``policy``, ``fields``, ``units``, ``sources``, ``drafting``: the owner's document.
- ``session``, ``builder``, ``question``: what the analyst calls; ``opened``: what they share.
- ``noise``, ``explain``, ``preview``: what can be said before anything is spent or read.
- ``noise``, ``estimates``, ``release``, ``certificate``: what happens after the charge.
- ``canonical``: what is hashed. ``display``: how results are drawn.
"""
