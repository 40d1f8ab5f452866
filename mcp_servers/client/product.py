"""What this product tells other programs that it is."""

from typing import Final

NAME: Final = "trellis"
VERSION: Final = "0.1.0"
