"""What this product tells people and other programs that it is.

A test holds `pyproject.toml`, the web app's `package.json` and the Helm chart to the same version.
"""

from typing import Final

NAME: Final = "trellis"
VERSION: Final = "0.1.0"
