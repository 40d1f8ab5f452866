"""docs/protocol.json, held against what the product really sends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from config.env import ROOT


@cache
def _validators() -> dict[str, Draft202012Validator]:
    """For each type of event, what checks a frame of that type."""
    schema = json.loads((ROOT / "docs" / "protocol.json").read_text())
    names = [choice["$ref"].rpartition("/")[2] for choice in schema["$defs"]["Event"]["oneOf"]]
    return {
        schema["$defs"][name]["properties"]["type"]["const"]: Draft202012Validator(
            {"$ref": f"#/$defs/{name}", "$defs": schema["$defs"]}
        )
        for name in names
    }


def check_frame(frame: Mapping[str, Any]) -> None:
    """Fail unless this frame is one that docs/protocol.json describes."""
    _validators()[frame["type"]].validate(frame)
