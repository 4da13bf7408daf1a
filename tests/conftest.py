"""For all tests: what hypothesis may do."""

import os

from hypothesis import settings

# Machines under load are slow, which is no failure. In CI the same examples are tried every time,
# so that a red run is about the change; elsewhere new ones are, so that bugs are still found.
settings.register_profile("anywhere", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "anywhere")
