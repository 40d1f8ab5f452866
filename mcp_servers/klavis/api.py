"""Hosted servers over REST; never a key, a credential or a server's own address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiExample, extend_schema
from drf_standardized_errors.openapi_serializers import ErrorResponse404Serializer
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from mcp_servers.klavis import accounts, installing, instance_changes, polling, removals
from mcp_servers.klavis.accounts import MAX_KEY_LENGTH, AccountDraft
from mcp_servers.klavis.asking import account_of
from mcp_servers.klavis.cards import instance_card, instance_cards
from mcp_servers.klavis.limits import count_hosted, count_poll
from mcp_servers.klavis.models import (
    InstanceState,
    KlavisAccount,
    KlavisDialect,
    KlavisInstance,
    KlavisRemoval,
)
from mcp_servers.pages.api.common import WhereUsedInput, where_used
from workspaces.api import KeysetPagination, ListRows, Scopes, WorkspaceViewSet
from workspaces.errors import NotFound
from workspaces.outbound import MAX_URL_LENGTH
from workspaces.roles import Permission, has_permission, require

if TYPE_CHECKING:
    from rest_framework.request import Request

    from workspaces.scoping import WorkspaceQuerySet


class SignInWindowOutput(serializers.Serializer[Any]):
    """Where the caller signs in to one service, in a browser."""

    service = serializers.CharField()
    url = serializers.CharField()


class HostedOutput(serializers.Serializer[Any]):
    """One hosted instance."""

    id = serializers.UUIDField()
    title = serializers.CharField()
    is_own = serializers.BooleanField(help_text="The caller's own, and not the workspace's.")
    state = serializers.ChoiceField(choices=InstanceState.choices)
    reason = serializers.CharField(help_text="Why it is in that state; may be empty.")
    services = serializers.ListField(
        child=serializers.CharField(), help_text="Of several services behind one server: which."
    )
    windows = SignInWindowOutput(
        many=True,
        help_text="Only for whoever may sign in; empty in an answer that is given again.",
    )
    is_read_only = serializers.BooleanField()
    uses_rest = serializers.BooleanField()
    server_id = serializers.UUIDField(allow_null=True)


def _services(*, least: int = 1) -> serializers.ListField:
    return serializers.ListField(
        child=serializers.CharField(max_length=200),
        min_length=least,
        max_length=installing.MAX_SERVICES,
        help_text="Names of services, as the catalogue of Klavis has them.",
    )


class HostedInput(serializers.Serializer[Any]):
    """What may be changed."""

    is_read_only = serializers.BooleanField(required=False)
    uses_rest = serializers.BooleanField(required=False)
    services = _services(least=0)
    """None, as a server with one service shows it, is no change of that one."""


class StrataInput(WhereUsedInput):
    """Services that stand behind one server, and where it is used."""

    services = _services()


class CredentialInput(serializers.Serializer[Any]):
    """What a service asks for."""

    secret = serializers.CharField(
        write_only=True,
        max_length=instance_changes.MAX_CREDENTIAL,
        help_text="It goes to Klavis. Trellis does not keep it.",
    )


class OthersHostedOutput(serializers.Serializer[Any]):
    """A hosted instance of somebody else."""

    id = serializers.UUIDField()
    title = serializers.CharField()
    whose = serializers.EmailField()
    state = serializers.ChoiceField(choices=InstanceState.choices)


class RemovalOutput(serializers.ModelSerializer[KlavisRemoval]):
    """A deletion that Klavis has not confirmed."""

    class Meta:
        model = KlavisRemoval
        fields = ("id", "label", "kind", "created_at", "attempts", "next_attempt_at", "last_error")
        read_only_fields = fields


class HostedAccountOutput(serializers.Serializer[Any]):
    """The workspace's account at Klavis; never its key."""

    base_url = serializers.CharField()
    dialect = serializers.ChoiceField(choices=KlavisDialect.choices)
    is_active = serializers.BooleanField()
    has_key = serializers.SerializerMethodField()
    problem = serializers.CharField(help_text="Why Klavis cannot be used; empty if it can.")
    checked_at = serializers.DateTimeField(allow_null=True)
    services = serializers.SerializerMethodField(
        help_text="How many services Klavis offered when it was last asked."
    )

    def get_has_key(self, account: KlavisAccount) -> bool:
        """Whether a key is stored."""
        return bool(account.api_key)

    def get_services(self, account: KlavisAccount) -> int:
        """The length of the kept catalogue."""
        return len(account.catalogue)


class HostedAccountInput(serializers.Serializer[Any]):
    """What may be set; a field that is left out stays as it is."""

    also_shown = frozenset({"has_key", "problem", "checked_at", "services"})
    """What `HostedAccountOutput` says besides may come with it."""

    base_url = serializers.CharField(
        required=False,
        max_length=MAX_URL_LENGTH,
        help_text="A different address removes the stored key, and you have to install the services again.",
    )
    api_key = serializers.CharField(
        required=False,
        write_only=True,
        max_length=MAX_KEY_LENGTH,
        help_text="No answer gives it back.",
    )
    dialect = serializers.ChoiceField(required=False, choices=KlavisDialect.choices)
    is_active = serializers.BooleanField(required=False)


class HostedAccountReport(serializers.Serializer[Any]):
    """What came of asking Klavis for its services."""

    ok = serializers.BooleanField()
    message = serializers.CharField()
    offers = serializers.IntegerField(help_text="How many services it offers.")


class HostedViewSet(WorkspaceViewSet):
    """Servers that a provider hosts for the workspace or for the caller."""

    model = KlavisInstance
    scopes = Scopes(read="servers:read", write="servers:write")
    pagination_class = None  # a short list, given whole
    serializer_class = HostedOutput
    # An address there names the instance, from which its own, secret one can be made.
    shown_once = frozenset({"windows"})
    parameters: ClassVar[Any] = {"others": ("cursor", "page_size")}

    def rows(self) -> WorkspaceQuerySet[Any]:
        """Those that the caller may see, with what their cards need."""
        return super().rows().select_related("workspace", "server", "user")

    @extend_schema(responses=HostedOutput(many=True), filters=False)
    def list(self, request: Request) -> Response:
        """Every instance of the workspace, and the caller's own."""
        cards = instance_cards(self.get_queryset(), actor=self.actor)
        return Response(HostedOutput(cards, many=True).data)

    @extend_schema(responses=HostedOutput)
    def retrieve(self, request: Request, pk: str) -> Response:
        """One of them."""
        return self._answer(self.get_object())

    @extend_schema(
        request=StrataInput,
        responses={201: HostedOutput},
        examples=[
            OpenApiExample(
                "Two services", value={"services": ["gmail", "github"]}, request_only=True
            )
        ],
    )
    def create(self, request: Request) -> Response:
        """Have several services behind one server of the workspace. One alone is installed from the catalogue."""
        count_hosted(self.actor)
        values = self.read(StrataInput)
        row = installing.install(
            workspace=self.workspace,
            server_name="",
            services=values["services"],
            actor=self.actor,
            for_workspace=True,
            where=where_used(values),
        )
        card = instance_card(self._with_owner().fetch(row.pk), actor=self.actor)
        return Response(HostedOutput(card).data, status=201)

    @extend_schema(request=HostedInput, responses=HostedOutput)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Have it only read, reach it over the provider's REST interface, or have other services behind it."""
        instance, values = self.get_object(), self.read(HostedInput, partial=True)
        wanted = {name: one for name, one in values.items() if one != getattr(instance, name)}
        if "is_read_only" in wanted:
            count_hosted(self.actor)
            instance_changes.set_read_only(
                instance=instance, is_read_only=wanted["is_read_only"], actor=self.actor
            )
        if "uses_rest" in wanted:
            instance_changes.set_uses_rest(
                instance=instance, uses_rest=wanted["uses_rest"], actor=self.actor
            )
        if "services" in wanted:
            count_hosted(self.actor)
            instance_changes.change_services(
                instance=instance, services=wanted["services"], actor=self.actor
            )
        return self._answer(self.get_object())

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Uninstall it: here at once, and at the provider. Who manages servers may uninstall everybody's."""
        rows = self._with_owner() if self._manages() else self.get_queryset()
        installing.uninstall(instance=rows.fetch(pk), actor=self.actor)
        return Response(status=204)

    @extend_schema(responses=OthersHostedOutput(many=True), filters=False)
    @action(
        detail=False,
        methods=["get"],
        pagination_class=KeysetPagination,
        orderings=("-id",),
    )
    def others(self, request: Request) -> Response:
        """What other people have installed for themselves, for those who manage servers."""
        require(self.actor, Permission.MANAGE_SERVERS, workspace_id=self.workspace.pk)
        rows = self._with_owner().exclude(user__isnull=True).exclude(user=self.person)
        cards = instance_cards(self.paginate_queryset(rows) or [], actor=self.actor)
        return self.get_paginated_response(OthersHostedOutput(cards, many=True).data)

    @extend_schema(request=CredentialInput, responses=HostedOutput)
    @action(detail=True, methods=["post"])
    def credential(self, request: Request, pk: str) -> Response:
        """Give a service its API key. It goes to Klavis, and no answer gives it back."""
        secret = self.read(CredentialInput)["secret"]
        count_hosted(self.actor)
        instance_changes.set_credential(instance=self.get_object(), secret=secret, actor=self.actor)
        return self._answer(self.get_object())

    @extend_schema(request=None, responses=HostedOutput)
    @action(detail=True, methods=["post"], url_path="sign-in")
    def sign_in(self, request: Request, pk: str) -> Response:
        """Begin the sign-in, or a failed installation, once more."""
        count_hosted(self.actor)
        installing.begin_again(instance=self.get_object(), actor=self.actor)
        return self._answer(self.get_object())

    @extend_schema(request=None, responses=HostedOutput)
    @action(detail=True, methods=["post"])
    def poll(self, request: Request, pk: str) -> Response:
        """What became of a sign-in, for whoever may begin it."""
        count_poll(self.actor)
        polling.poll_for(instance=self.get_object(), actor=self.actor)
        return self._answer(self.get_object())

    @extend_schema(responses={200: HostedAccountOutput, 404: ErrorResponse404Serializer})
    @action(detail=False, methods=["get"])
    def account(self, request: Request) -> Response:
        """The workspace's account at Klavis, for those who manage servers; 404 if it has none."""
        require(self.actor, Permission.MANAGE_SERVERS, workspace_id=self.workspace.pk)
        account = account_of(self.workspace.pk)
        if account is None:
            raise NotFound(_("Klavis is not set up in this workspace."))
        return Response(HostedAccountOutput(account).data)

    @extend_schema(request=HostedAccountInput, responses=HostedAccountOutput)
    @account.mapping.patch
    def change_account(self, request: Request) -> Response:
        """Set the account up, or change it. A new key that Klavis refuses does not replace the stored one."""
        values = self.read(HostedAccountInput)
        if "dialect" in values:
            values["dialect"] = KlavisDialect(values["dialect"])
        draft = AccountDraft(**values)
        if draft.api_key:
            count_hosted(self.actor)
            accounts.try_new_key(workspace_id=self.workspace.pk, draft=draft, actor=self.actor)
        account = accounts.save_account(
            workspace_id=self.workspace.pk, draft=draft, actor=self.actor
        )
        return Response(HostedAccountOutput(account).data)

    @extend_schema(responses={204: None, 404: ErrorResponse404Serializer})
    @account.mapping.delete
    def remove_account(self, request: Request) -> Response:
        """Take the account away, with every server that came from it."""
        accounts.remove_account(workspace_id=self.workspace.pk, actor=self.actor)
        return Response(status=204)

    @extend_schema(request=None, responses=HostedAccountReport)
    @action(detail=False, methods=["post"], url_path="account/test")
    def test_account(self, request: Request) -> Response:
        """Ask Klavis for its services, with the stored key."""
        count_hosted(self.actor)
        report = accounts.try_account(workspace_id=self.workspace.pk, actor=self.actor)
        return Response(HostedAccountReport(report).data)

    def _answer(self, instance: KlavisInstance) -> Response:
        return Response(HostedOutput(instance_card(instance, actor=self.actor)).data)

    def _with_owner(self) -> WorkspaceQuerySet[Any]:
        rows = KlavisInstance.objects.for_workspace(self.workspace)
        return rows.select_related("workspace", "server", "user")

    def _manages(self) -> bool:
        return has_permission(self.actor, Permission.MANAGE_SERVERS, workspace_id=self.workspace.pk)


class RemovalViewSet(ListRows, WorkspaceViewSet):
    """Deletions at Klavis that are not confirmed yet, for those who manage servers."""

    model = KlavisRemoval  # type: ignore[assignment]  # it outlives its workspace
    scopes = Scopes(read="servers:read", write="servers:write")
    serializer_class = RemovalOutput
    orderings: ClassVar[Any] = ("id",)

    def rows(self) -> WorkspaceQuerySet[Any]:
        """Those of the workspace."""
        require(self.actor, Permission.MANAGE_SERVERS, workspace_id=self.workspace.pk)
        return KlavisRemoval.objects.for_workspace(self.workspace)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Give a deletion up that Klavis does not take, as with a key that was withdrawn."""
        removals.forget_removal(removal=self.get_object(), actor=self.actor)
        return Response(status=204)


routes: list[tuple[str, type[WorkspaceViewSet]]] = [
    ("hosted-servers", HostedViewSet),
    ("hosted-removals", RemovalViewSet),
]
