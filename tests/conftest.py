"""What holds for every test."""

from hypothesis import settings

# No test measures time: a busy machine must not fail one.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
