"""Results with pictures and long texts."""

from __future__ import annotations

from uuid import uuid4

import mcp_types
from PIL import Image

from mcp_servers.client.results import is_heavy, read_result
from tests.workspaces.encoded_pictures import encoded


def test_many_pictures_of_one_result_share_one_bound() -> None:
    """REL-43: embedded pictures are decoded off the loop, and not without end."""
    big = encoded(Image.new("L", (5000, 4900)), "PNG")
    blob = mcp_types.BlobResourceContents(uri="pic://x", mime_type="image/png", blob=big)
    block = mcp_types.EmbeddedResource(type="resource", resource=blob)
    result = mcp_types.CallToolResult(content=[block] * 6)
    assert is_heavy(result)
    outcome = read_result(
        result, workspace_id=uuid4(), limit_bytes=2**20, output_schema=None, duration_ms=0
    )
    kinds = [part.as_json()["type"] for part in outcome.content]
    assert kinds == ["image", "image", "text", "text", "text", "text"]


def test_a_short_structured_result_is_read_where_it_is() -> None:
    """REL-43: what an event loop would notice is read in another thread, by its text or by its values."""

    def of(value: dict[str, object]) -> mcp_types.CallToolResult:
        return mcp_types.CallToolResult(content=[], structured_content=value)

    assert not is_heavy(of({"time": "12:00", "zone": {"name": "Asia/Tokyo"}}))
    assert is_heavy(of({"text": "x" * 10_000}))
    assert is_heavy(of({"k" * 10_000: 1}))
    assert is_heavy(of({"rows": [{"a": 1}] * 100}))
