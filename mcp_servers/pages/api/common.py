"""Fields that bodies of the REST interface of servers share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from mcp_servers.registry.bud_choices import WhereUsed


class WhereUsedInput(serializers.Serializer[Any]):
    """Where a new server is used."""

    is_used_everywhere = serializers.BooleanField(
        required=False,
        default=True,
        help_text="In every bud that takes all tools; for the caller alone: in all their chats.",
    )
    bud_ids = serializers.ListField(
        child=serializers.UUIDField(),
        required=False,
        max_length=100,
        help_text="Buds that use it, whatever tools they take.",
    )


def where_used(values: Mapping[str, Any]) -> WhereUsed:
    """What a body says of it."""
    return WhereUsed(
        is_used_everywhere=values["is_used_everywhere"], bud_ids=tuple(values.get("bud_ids", ()))
    )


class TextMapField(serializers.DictField):
    """Names to texts."""

    child = serializers.CharField(max_length=8192, allow_blank=True, trim_whitespace=False)
