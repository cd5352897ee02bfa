"""One profile for all of hypothesis: examples follow from the test alone, so that a run can be repeated."""

from hypothesis import settings

settings.register_profile("steady", derandomize=True)
settings.load_profile("steady")
