"""What the REST interface of servers shares: strict bodies."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers

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
                raise serializers.ValidationError(
                    {name[:100]: ["Unknown field."] for name in unknown}
                )
        return super().to_internal_value(data)


class TextMapField(serializers.DictField):
    """Names to texts."""

    child = serializers.CharField(max_length=8192, allow_blank=True, trim_whitespace=False)
