"""How much of what can be repeated without end a run repeats."""

import os
from typing import Final

IS_FULL: Final = "TRELLIS_FULL" in os.environ
"""Whether this is ``manage.py test --full``, for releases."""
