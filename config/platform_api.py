"""The state of the installation over REST, for the platform's owner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.utils.translation import gettext as _
from drf_spectacular.helpers import forced_singular_serializer
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from chat import restore
from config.doctor import State, examine
from workspaces.api import PlatformViewSet
from workspaces.errors import Conflict
from workspaces.restore import restored_at

if TYPE_CHECKING:
    from rest_framework.request import Request


class FindingOutput(serializers.Serializer[Any]):
    """How one part is."""

    part = serializers.CharField()
    state = serializers.ChoiceField([one.value for one in State])
    text = serializers.CharField()
    advice = serializers.CharField(help_text="What to do. Empty: nothing has to be done.")


class StateOutput(serializers.Serializer[Any]):
    """What `manage.py doctor` finds on the machine that answers."""

    restored_at = serializers.DateTimeField(
        allow_null=True,
        help_text="When the database was found restored from a backup, until somebody confirms it. Null: nothing is to be"
        " confirmed.",
    )
    unwell = serializers.IntegerField(help_text="Parts that need your attention.")
    findings = FindingOutput(many=True)


class RestoreOutput(serializers.Serializer[Any]):
    """What came of a confirmation."""

    was_open = serializers.BooleanField(help_text="False: the restore was confirmed before.")


class StateViewSet(PlatformViewSet):
    """The installation itself: versions, settings, keys, storage, queues, seals and restores."""

    serializer_class = StateOutput
    pagination_class = None  # type: ignore[assignment]  # one document
    needs_person: ClassVar[Any] = frozenset({"confirm_restore"})

    @extend_schema(
        responses=forced_singular_serializer(StateOutput),  # type: ignore[no-untyped-call]  # has no types
        filters=False,
        operation_id="platform_state_retrieve",
    )
    def list(self, request: Request) -> Response:
        """Look at everything the installation stands on. Nothing of a key is told but whether it is there."""
        found = examine()
        shown = {
            "restored_at": restored_at(),
            "unwell": sum(one.state is not State.OK for one in found),
            "findings": found,
        }
        return Response(StateOutput(shown).data)

    @extend_schema(request=None, responses=RestoreOutput)
    @action(detail=False, methods=["post"], url_path="confirm-restore")
    def confirm_restore(self, request: Request) -> Response:
        """Say that you have looked at what a restore lost. Webhooks go out again. Takes a signed-in person."""
        try:
            was_open = restore.confirm(by=self.person.email, actor=self.actor)
        except OSError as error:
            told = _("Nothing was confirmed: the checkpoint file of the log could not be written.")
            raise Conflict(told) from error
        return Response(RestoreOutput({"was_open": was_open}).data)


platform_routes = [("state", StateViewSet)]
