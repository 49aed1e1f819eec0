"""Its presence puts this folder on the import path of all tests below it (builders such as `cause_cases`)."""

from hypothesis import HealthCheck, settings

# The same cases on every machine and no time limit on one of them: two cores may be shared by many.
settings.register_profile("house", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")
