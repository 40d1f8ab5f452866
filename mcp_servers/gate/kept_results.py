"""Results of identical calls to tools that just read, kept for as long as an administrator says.

The key holds everything that could make the answer another one: workspace, principal, the connection's settings, the
tool's definition and the arguments. Who may call is decided anew each time; only the trip to the server is spared.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from django.core.cache import cache
from django.utils import timezone

from audit.actions import Outcome
from mcp_servers.client.values import ContentPart, EmbeddedResourcePart, ToolCallOutcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_servers.models import McpTool

logger = logging.getLogger(__name__)

MAX_KEPT_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptResult:
    """A result, and when it was fetched."""

    outcome: ToolCallOutcome
    at: datetime


def find_kept(tool: McpTool, key: Callable[[], str]) -> ToolCallOutcome | None:
    """The result of an identical call, if the tool's results are kept and there is one."""
    if not _is_kept(tool):
        return None
    try:
        kept = cache.get(key())
    except Exception:
        # Whatever the cache's own trouble is, the server can still be asked.
        logger.exception("kept_results_unreachable")
        return None
    if not isinstance(kept, KeptResult):
        return None
    return replace(kept.outcome, cached_at=kept.at, duration_ms=0)


def identical_result(tool: McpTool, result: ToolCallOutcome | None) -> ToolCallOutcome | None:
    """What the caller got for the very same call a moment ago, if a trusted server says that the tool just reads."""
    if result is None or not tool.facts().only_reads:
        return None
    return replace(result, cached_at=result.cached_at or timezone.now(), duration_ms=0)


def keep(tool: McpTool, key: Callable[[], str], outcome: ToolCallOutcome) -> None:
    """Keep a good result, if the tool's are. Not for an event loop, and not for one that rests on a person's answers."""
    if not _is_kept(tool) or outcome.outcome is not Outcome.OK or outcome.truncated:
        return
    if sum(_size(part) for part in outcome.content) <= MAX_KEPT_BYTES:
        kept = KeptResult(outcome=outcome, at=timezone.now())
        try:
            cache.set(key(), kept, timeout=tool.cache_seconds)
        except Exception:
            logger.exception("kept_results_unreachable")


def key_of(arguments: bytes, *parts: str) -> str:
    """The name of a result in the cache."""
    whole = "|".join([*parts, hashlib.sha256(arguments).hexdigest()])
    return f"mcp-result.{hashlib.sha256(whole.encode()).hexdigest()}"


def _size(part: ContentPart) -> int:
    files = part.data if isinstance(part, EmbeddedResourcePart) else None
    return len(str(part.as_json())) + len(files or "")


def _is_kept(tool: McpTool) -> bool:
    """An administrator says so, and a trusted server still says that the tool just reads."""
    return bool(tool.cache_seconds) and tool.facts().only_reads
