"""How the tests of the core run."""

from hypothesis import settings

# how long an example takes says something about the machine, not about the code
settings.register_profile("core", deadline=None)
settings.load_profile("core")
