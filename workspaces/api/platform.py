"""Workspaces and accounts of the whole installation over REST, for the platform's owner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import django_filters
from allauth.account.internal.flows.email_verification import send_verification_email_to_address
from django.db import transaction
from django.db.models import Q
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from workspaces.api import ListRows, PlatformViewSet, RetrieveRow, RowFilterSet
from workspaces.api.filtering import TruthFilter
from workspaces.models import User, Workspace
from workspaces.people.platform import (
    WORKSPACE_RULES,
    add_account,
    remove_picture_of,
    resume_workspace,
    save_account,
    save_workspace,
    suspend_workspace,
)
from workspaces.people.two_step import turn_off_two_steps

if TYPE_CHECKING:
    from django.db.models import QuerySet

_LONGEST_SEARCH: Final = 100
_LONGEST_PASSWORD: Final = 1000


class WordsFilter(django_filters.CharFilter):
    """Words that are looked for in some fields."""

    def __init__(self, *fields: str) -> None:
        super().__init__(max_length=_LONGEST_SEARCH, label=f"Looked for in {' and '.join(fields)}.")
        self._fields = fields

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        """Narrow to rows in which one of the fields has it."""
        wanted = Q()
        for name in self._fields if value else ():
            wanted |= Q(**{f"{name}__icontains": value})
        return qs.filter(wanted)


class PlatformWorkspaceOutput(serializers.ModelSerializer[Workspace]):
    """A workspace, with its rules. Nothing of what is in it."""

    class Meta:
        model = Workspace
        fields = ("id", "name", "slug", "is_active", *WORKSPACE_RULES, "created_at", "updated_at")
        read_only_fields = fields


class PlatformWorkspaceChanges(serializers.ModelSerializer[Workspace]):
    """What is left out stays as it is."""

    class Meta:
        model = Workspace
        fields = ("name", "slug", *WORKSPACE_RULES)
        extra_kwargs: ClassVar[Any] = {
            # The service says so (422), as it says it on the page.
            "slug": {"validators": []},
            **{name: {"required": False} for name in WORKSPACE_RULES},
        }


class PlatformWorkspaceInput(PlatformWorkspaceChanges):
    """A new workspace, which has no members yet."""


class SuspendWorkspaceInput(serializers.Serializer[Any]):
    confirmation = serializers.CharField(max_length=100, help_text="The name of the workspace.")


class PlatformWorkspaceFilters(RowFilterSet):
    is_active = TruthFilter()
    q = WordsFilter("name", "slug")


class PlatformWorkspaceViewSet(ListRows, RetrieveRow, PlatformViewSet):
    """All workspaces of the installation."""

    queryset = Workspace.objects.all()
    serializer_class = PlatformWorkspaceOutput
    filterset_class = PlatformWorkspaceFilters
    orderings: ClassVar[Any] = ("name", "created_at", "-id")

    @extend_schema(request=PlatformWorkspaceInput, responses={201: PlatformWorkspaceOutput})
    def create(self, request: Request) -> Response:
        """Make a workspace. You enter it as its owner would, and invite people there."""
        workspace = Workspace(**self.read(PlatformWorkspaceInput))
        return self.answer(save_workspace(workspace=workspace, actor=self.actor), status=201)

    @extend_schema(request=PlatformWorkspaceChanges, responses=PlatformWorkspaceOutput)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change its name, its place in addresses or its rules."""
        given = self.read(PlatformWorkspaceChanges, partial=True)
        with transaction.atomic():
            workspace: Workspace = self.get_held()
            for name, value in given.items():
                setattr(workspace, name, value)
            return self.answer(save_workspace(workspace=workspace, actor=self.actor))

    @extend_schema(request=SuspendWorkspaceInput, responses=PlatformWorkspaceOutput)
    @action(detail=True, methods=["post"])
    def suspend(self, request: Request, pk: str) -> Response:
        """Shut everybody out. Nothing is lost."""
        typed = self.read(SuspendWorkspaceInput)["confirmation"]
        with transaction.atomic():
            held = self.get_held()
            return self.answer(suspend_workspace(workspace=held, typed=typed, actor=self.actor))

    @extend_schema(request=None, responses=PlatformWorkspaceOutput)
    @action(detail=True, methods=["post"])
    def resume(self, request: Request, pk: str) -> Response:
        """Open a suspended workspace again."""
        with transaction.atomic():
            held = self.get_held()
            return self.answer(resume_workspace(workspace=held, actor=self.actor))


class PlatformAccountOutput(serializers.ModelSerializer[User]):
    """An account. Its password is not shown, and is set on its page alone."""

    has_picture = serializers.BooleanField(source="picture_digest", help_text="Of themselves.")

    class Meta:
        model = User
        fields = (
            *("id", "email", "is_address_confirmed", "name", "has_picture"),
            *("has_two_steps", "is_active", "is_superuser"),
            *("last_login", "created_at", "updated_at"),
        )
        read_only_fields = fields


class PlatformAccountChanges(serializers.Serializer[Any]):
    """What is left out stays as it is."""

    email = serializers.EmailField(
        max_length=254,
        required=False,
        help_text="Takes a signed-in person. The new one gets a mail.",
    )
    name = serializers.CharField(max_length=150, allow_blank=True, required=False)
    is_active = serializers.BooleanField(
        required=False, help_text="False: the person can no longer sign in, and tokens end."
    )
    is_superuser = serializers.BooleanField(
        required=False, help_text="Owns the platform. Takes a signed-in person."
    )


class PlatformAccountInput(serializers.Serializer[Any]):
    email = serializers.EmailField(max_length=254)
    name = serializers.CharField(max_length=150, allow_blank=True, default="")
    password = serializers.CharField(
        max_length=_LONGEST_PASSWORD, trim_whitespace=False, write_only=True
    )


class PlatformAccountFilters(RowFilterSet):
    is_active = TruthFilter()
    is_superuser = TruthFilter()
    is_address_confirmed = TruthFilter()
    has_two_steps = TruthFilter()
    q = WordsFilter("email", "name")


class PlatformAccountViewSet(ListRows, RetrieveRow, PlatformViewSet):
    """All accounts of the installation. A token changes only name and `is_active`, and of no owner of the platform."""

    queryset = User.objects.all()
    serializer_class = PlatformAccountOutput
    filterset_class = PlatformAccountFilters
    orderings: ClassVar[Any] = ("email", "created_at", "-id")
    needs_person: ClassVar[Any] = frozenset({"create", "two_steps"})

    @extend_schema(request=PlatformAccountInput, responses={201: PlatformAccountOutput})
    def create(self, request: Request) -> Response:
        """Make an account, which is in no workspace yet. Its address gets a mail. Takes a signed-in person."""
        account = add_account(**self.read(PlatformAccountInput), actor=self.actor)
        return self._mailed(account, status=201)

    @extend_schema(request=PlatformAccountChanges, responses=PlatformAccountOutput)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change an account. The last owner of the platform stays one (409)."""
        given = self.read(PlatformAccountChanges, partial=True)
        with transaction.atomic():
            account: User = self.get_held()
            for name, value in given.items():
                setattr(account, name, value)
            is_moved = save_account(account=account, actor=self.actor)
        return self._mailed(account) if is_moved else self.answer(account)

    @extend_schema(request=None, responses=PlatformAccountOutput)
    @action(detail=True, methods=["delete"])
    def picture(self, request: Request, pk: str) -> Response:
        """Take down the picture that a person gave of themselves. They can give another one."""
        with transaction.atomic():
            return self.answer(remove_picture_of(account=self.get_held(), actor=self.actor))

    @extend_schema(request=None, responses=PlatformAccountOutput)
    @action(detail=True, methods=["delete"])
    def two_steps(self, request: Request, pk: str) -> Response:
        """Turn off two-step verification for somebody who has lost their phone, and end their passkeys. They get a mail. Takes a signed-in person."""
        with transaction.atomic():
            return self.answer(turn_off_two_steps(account=self.get_held(), actor=self.actor))

    def _mailed(self, account: User, status: int = 200) -> Response:
        send_verification_email_to_address(self._http_request, account.keep_address())
        return self.answer(account, status=status)


platform_routes = [
    ("workspaces", PlatformWorkspaceViewSet),
    ("accounts", PlatformAccountViewSet),
]
