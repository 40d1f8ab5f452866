"""What the REST interface of servers shares: strict bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers

from mcp_servers.registry.bud_choices import WhereUsed
from workspaces.errors import PermissionDenied

_PROGRAM_WORDS = frozenset({"command", "args", "argv", "arguments", "cwd", "executable", "shell"})


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses what it does not know, so that a typing error or a forbidden field is never silently dropped."""

    def to_internal_value(self, data: Any) -> Any:
        """Read the body.

        Raises:
            PermissionDenied: a field would name a program; programs come from the platform's catalogue alone.
            ValidationError: any other unknown field.
        """
        if isinstance(data, dict):
            unknown = {str(name) for name in data} - set(self.fields)
            if unknown & _PROGRAM_WORDS:
                raise PermissionDenied(_("Pick a program from the platform's catalogue."))
            if unknown:
                error = _("There is no such field here. There are: %(names)s.") % {
                    "names": ", ".join(self.fields)
                }
                raise serializers.ValidationError(
                    {name[:100]: [error] for name in unknown}, "unknown_field"
                )
        return super().to_internal_value(data)


class WhereUsedInput(StrictSerializer):
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
