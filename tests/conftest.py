"""What holds for every test."""

from hypothesis import HealthCheck, settings

# No test measures time: a busy machine must not fail one.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
