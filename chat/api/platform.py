"""Model providers of the whole installation over REST, for the platform's owner. Keys are taken, and never given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final
from uuid import UUID

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.response import Response

from chat.api.platform_shapes import (
    EnvironmentProviderOutput,
    PartChanges,
    PartOutput,
    ProviderTrialOutput,
    SharedProviderChanges,
    SharedProviderDetailOutput,
    SharedProviderInput,
    SharedProviderOutput,
    SharedUsageOutput,
    SwitchInput,
    WorkspaceChoice,
)
from chat.api.providers import ListChangesOutput
from chat.models import ModelProvider, SharedProvider
from chat.models.provider_lists import ENVIRONMENTS
from chat.pages.shared_provider_form import OwnModels
from chat.providers.choosing import platform_provider
from chat.providers.known_lists import platforms_list
from chat.providers.limits import loads_of, platform_load, shared_load
from chat.providers.specs import limits_of
from chat.services.given_providers import given_rows
from chat.services.parts_of_shared import PartDraft, change_part, find_part
from chat.services.platform_provider import (
    USAGE_DAYS,
    embedding_model,
    settings_of,
    try_shared_provider,
    usage_by_workspace,
)
from chat.services.removed_model_uses import would_be_taken, would_be_taken_from
from chat.services.shared_providers import (
    SharedDraft,
    change_shared_provider,
    delete_shared_provider,
    give_provider,
    share_provider,
    switch_shared_provider,
    withdraw_provider,
)
from chat.services.shared_uses import fetch_for_owner, shared_rows, uses_by_workspace, uses_of
from chat.services.uses_in_words import require_word
from workspaces.api import ListRows, PlatformViewSet, RowFilterSet, one_document
from workspaces.api.filtering import TruthFilter
from workspaces.errors import NotFound
from workspaces.models import Workspace
from workspaces.secret_memory import without_secrets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rest_framework.request import Request

_OF_ROW: Final = (
    *("name", "base_url", "default_model", "offer", "chosen_models", "is_for_all"),
    *("most_at_once", "most_a_minute"),
)


def _list_changes(base_url: str, list_id: UUID) -> Response:
    listed = platforms_list(base_url, list_id)
    if listed is None:
        raise NotFound(_("This provider's list of models was not asked for yet."))
    values = {name: getattr(listed, name) for name in ("asked_at", "listed_at", "fault")}
    return Response(ListChangesOutput({**values, **listed.list_changes.model_dump()}).data)


def _usage(usage: Any) -> Response:
    shown = {"days": USAGE_DAYS, "rows": usage.rows, "left_out": usage.left_out}
    return Response(SharedUsageOutput(shown).data)


class EnvironmentProviderViewSet(PlatformViewSet):
    """The provider that the environment gives to all workspaces."""

    serializer_class = EnvironmentProviderOutput
    pagination_class = None  # one document

    @one_document(EnvironmentProviderOutput, "platform_environment_provider_retrieve")
    def list(self, request: Request) -> Response:
        """How it is set, and how busy it is."""
        provider = platform_provider()
        shown = {
            "name": provider.name,
            "is_demo": provider.is_demo,
            "base_url": "" if provider.is_demo else without_secrets(provider.base_url),
            "has_key": bool(provider.api_key),
            "default_model": provider.model,
            "embedding_model": embedding_model(),
            "variables": settings_of(),
            "load": None if provider.is_demo else platform_load(),
        }
        return Response(EnvironmentProviderOutput(shown).data)

    @extend_schema(request=None, responses=ProviderTrialOutput)
    @action(detail=False, methods=["post"])
    def test(self, request: Request) -> Response:
        """Ask it for its models, and its default model for a word."""
        return Response(ProviderTrialOutput(try_shared_provider(actor=self.actor)).data)

    @extend_schema(responses=SharedUsageOutput, filters=False)
    @action(detail=False, methods=["get"])
    def usage(self, request: Request) -> Response:
        """What each workspace asked of it in the last 30 days."""
        return _usage(usage_by_workspace(actor=self.actor))

    @extend_schema(responses=ListChangesOutput, filters=False)
    @action(detail=False, methods=["get"], url_path="list-changes")
    def list_changes(self, request: Request) -> Response:
        """Tell what changed in its list of models; 404 before it was asked for the first time."""
        return _list_changes(platform_provider().base_url, ENVIRONMENTS)


class SharedProviderFilters(RowFilterSet):
    is_active = TruthFilter()
    is_for_all = TruthFilter()


class SharedProviderViewSet(ListRows, PlatformViewSet):
    """Providers that workspaces are given. Each gets one of its own that points here."""

    queryset = SharedProvider.objects.all()
    serializer_class = SharedProviderOutput
    filterset_class = SharedProviderFilters
    orderings: ClassVar[Any] = ("name", "-id")
    parameters: ClassVar[Any] = {"workspaces": ("cursor", "page_size")}

    def get_queryset(self) -> Any:
        return shared_rows(actor=self.actor)

    @property
    def _shared(self) -> SharedProvider:
        return fetch_for_owner(self.kwargs["pk"], actor=self.actor)

    def _row(self, pk: UUID, status: int = 200) -> Response:
        return self.answer(self.get_queryset().get(pk=pk), status=status)

    @extend_schema(responses=SharedProviderDetailOutput)
    def retrieve(self, request: Request, pk: str) -> Response:
        """Give one with what uses it."""
        row = self.get_object()
        row.uses, row.load = uses_of(row), shared_load(row.pk)
        return Response(SharedProviderDetailOutput(row).data)

    @extend_schema(request=SharedProviderInput, responses={201: SharedProviderOutput})
    def create(self, request: Request) -> Response:
        """Share a provider. 422 at `api_key` if it refuses the key, 502 with the reason if it does not answer."""
        given = self.read(SharedProviderInput)
        is_tested = not given.pop("untested_key", False)
        shared = share_provider(draft=SharedDraft(**given), actor=self.actor, is_tested=is_tested)
        return self._row(shared.pk, status=201)

    @extend_schema(request=SharedProviderChanges, responses=SharedProviderOutput)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change it for every workspace that has it. A new key is tried first, as above."""
        shared = self._shared
        given = self.read(SharedProviderChanges, partial=True)
        is_tested = not given.pop("untested_key", False)
        takes_away = given.pop("takes_away", False)
        draft = SharedDraft(**{name: getattr(shared, name) for name in _OF_ROW} | given)
        if not takes_away:
            require_word(would_be_taken(shared=shared, draft=draft, actor=self.actor))
        change_shared_provider(shared=shared, draft=draft, actor=self.actor, is_tested=is_tested)
        return self._row(shared.pk)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Delete it with its key. Where a workspace uses it, one without address and key stays, switched off."""
        delete_shared_provider(shared=self._shared, actor=self.actor)
        return Response(status=204)

    @extend_schema(request=SwitchInput, responses=SharedProviderOutput)
    @action(detail=True, methods=["post"])
    def switch(self, request: Request, pk: str) -> Response:
        """Switch it on or off for every workspace. Answers under way go on."""
        shared = self._shared
        switch_shared_provider(shared=shared, **self.read(SwitchInput), actor=self.actor)
        return self._row(shared.pk)

    @extend_schema(request=WorkspaceChoice, responses=SharedProviderOutput)
    @action(detail=True, methods=["post"])
    def give(self, request: Request, pk: str) -> Response:
        """Let a workspace use it."""
        shared, workspace = self._shared, self._chosen()
        give_provider(shared=shared, workspace=workspace, actor=self.actor)
        return self._row(shared.pk)

    @extend_schema(request=WorkspaceChoice, responses=SharedProviderOutput)
    @action(detail=True, methods=["post"])
    def withdraw(self, request: Request, pk: str) -> Response:
        """Take it from a workspace; 409 if it is for every one. What uses it stays, and gets no answers."""
        shared, workspace = self._shared, self._chosen()
        withdraw_provider(shared=shared, workspace=workspace, actor=self.actor)
        return self._row(shared.pk)

    @extend_schema(request=None, responses=ProviderTrialOutput)
    @action(detail=True, methods=["post"])
    def test(self, request: Request, pk: str) -> Response:
        """Ask it for its models, and its default model for a word."""
        trial = try_shared_provider(actor=self.actor, shared=self._shared)
        return Response(ProviderTrialOutput(trial).data)

    @extend_schema(responses=SharedUsageOutput, filters=False)
    @action(detail=True, methods=["get"])
    def usage(self, request: Request, pk: str) -> Response:
        """What each workspace asked of it in the last 30 days."""
        return _usage(usage_by_workspace(actor=self.actor, shared=self._shared))

    @extend_schema(responses=ListChangesOutput, filters=False)
    @action(detail=True, methods=["get"], url_path="list-changes")
    def list_changes(self, request: Request, pk: str) -> Response:
        """Tell what changed in its list of models; 404 before it was asked for the first time."""
        shared = self._shared
        return _list_changes(shared.base_url, shared.pk)

    @extend_schema(responses=PartOutput(many=True), filters=False)
    @action(detail=True, methods=["get"])
    def workspaces(self, request: Request, pk: str) -> Response:
        """The workspaces that have it, also those from which it was withdrawn and that still use it."""
        shared = self._shared
        rows = given_rows(shared).select_related("workspace")
        page: Sequence[ModelProvider] = self.paginate_queryset(rows) or ()
        return self.get_paginated_response(self._parts(shared, page))

    @extend_schema(methods=["GET"], responses=PartOutput, filters=False)
    @extend_schema(methods=["PATCH"], request=PartChanges, responses=PartOutput)
    @action(
        detail=True,
        methods=["get", "patch"],
        url_path="workspaces/<uuid:workspace_id>",
        url_name="part",
    )
    def part(self, request: Request, pk: str, workspace_id: UUID) -> Response:
        """What one workspace may have of it: which models, and how many requests."""
        shared, workspace = self._shared, _workspace(workspace_id)
        row = find_part(shared=shared, workspace=workspace, actor=self.actor)
        if request.method == "PATCH":
            given = self.read(PartChanges, partial=True)
            takes_away = given.pop("takes_away", False)
            draft = _draft(row, given)
            if not takes_away:
                taken = would_be_taken_from(
                    shared=shared, workspace=workspace, draft=draft, actor=self.actor
                )
                require_word(taken)
            row = change_part(shared=shared, workspace=workspace, draft=draft, actor=self.actor)
        return Response(self._parts(shared, [row])[0])

    def _chosen(self) -> Workspace:
        return _workspace(self.read(WorkspaceChoice)["workspace"])

    def _parts(self, shared: SharedProvider, rows: Sequence[ModelProvider]) -> Any:
        context = {
            "uses": uses_by_workspace(shared, [row.workspace for row in rows]),
            "loads": loads_of([row for row in rows if limits_of(row) is not None]),
        }
        return PartOutput(rows, many=True, context=context).data


def _workspace(pk: UUID) -> Workspace:
    workspace = Workspace.objects.filter(pk=pk).first()
    if workspace is None:
        raise NotFound(_("Workspace not found."))
    return workspace


def _draft(row: ModelProvider, given: dict[str, Any]) -> PartDraft:
    """What the part shall be: what it is, with what was given."""
    models = row.offered_models if row.has_own_offer else None
    own = OwnModels.FOLLOWS
    if row.has_own_offer:
        own = OwnModels.ALL if models is None else OwnModels.CHOSEN
    own = given.get("own_models", own)
    chosen = given.get("chosen_models", models or ())
    return PartDraft(
        has_own_offer=own != OwnModels.FOLLOWS,
        offered_models=chosen if own == OwnModels.CHOSEN else None,
        most_at_once=given.get("most_at_once", row.most_at_once),
        most_a_minute=given.get("most_a_minute", row.most_a_minute),
        most_cost_a_month=given.get("most_cost_a_month", row.most_cost_a_month),
        most_tokens_a_month=given.get("most_tokens_a_month", row.most_tokens_a_month),
    )


platform_routes = [
    ("environment-provider", EnvironmentProviderViewSet),
    ("providers", SharedProviderViewSet),
]
