"""Sessions, questions, previews and releases: the only package where data meets noise.

- ``_policy``, ``_fields``, ``_units``, ``_places``, ``_drafting``: the owner's document;
  ``_sources`` opens what it names.
- ``_session``, ``_builder``, ``_requests``, ``_question``: what the analyst calls;
  ``_opened``: what they share.
- ``_noise``, ``_explain``, ``_preview``: what can be said before anything is spent or read.
- ``_noise``, ``_estimates``, ``_release``, ``_certificate``: what happens after the charge.
- ``_statistics``, ``_regressors``: what inference asks of a table.
- ``_canonical``: what is hashed. ``_display``: how results are drawn.
"""
