"""What true servers send, as they send it, and what has to come of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def recorded() -> dict[str, dict[str, Any]]:
    """Every recorded stream by "server: what it shows"."""
    return {
        f"{file.stem}: {case['name']}": case
        for file in sorted(HERE.glob("*.json"))
        for case in json.loads(file.read_text("utf-8"))
    }


def bytes_of(case: dict[str, Any], newline: str = "\n") -> bytes:
    """The stream as it goes over the wire."""
    return (newline.join(case["lines"]) + newline).encode()
