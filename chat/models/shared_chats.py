"""Conversations that people let others read: who may, and the text as it was when they shared it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.fields.json import KeyTextTransform
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from chat.models.conversations import Conversation
from chat.shared_document import SharedDocument
from chat.values import parse_value
from workspaces.models import Membership
from workspaces.people.entering import open_workspaces
from workspaces.scoping import PersonalQuerySet, WorkspaceModel
from workspaces.secrets import EncryptedTextField

if TYPE_CHECKING:
    from workspaces.models import User


class ShareAudience(models.TextChoices):
    """Who may read a shared chat."""

    PEOPLE = "people", _("Chosen people")
    WORKSPACE = "workspace", _("Everyone in the workspace")
    LINK = "link", _("Anyone with the link")


class SharedChatQuerySet(PersonalQuerySet["SharedChat"]):
    def visible_to(self, user: User) -> SharedChatQuerySet:
        """Those that this person shares; not of a conversation that they have deleted."""
        return super().visible_to(user).filter(conversation__deleted_at=None)

    def open_now(self) -> SharedChatQuerySet:
        """Those that somebody may read: not run out, not deleted, and of people who are members still."""
        return self.filter(
            Q(expires_at=None) | Q(expires_at__gt=timezone.now()),
            Q(workspace__allows_public_links=True) | ~Q(audience=ShareAudience.LINK.value),
            Exists(_membership(OuterRef("owner"))),
            conversation__deleted_at=None,
            workspace__is_active=True,
        )

    def readable_by(self, user: User | None) -> SharedChatQuerySet:
        """Those that this person may read; None: somebody who is not signed in."""
        anybody = Q(audience=ShareAudience.LINK.value)
        if user is None:
            return self.open_now().filter(anybody)
        named = SharedChatReader.unscoped.filter(shared=OuterRef("pk"), person=user)
        allowed = (
            Q(owner=user)
            | Q(audience=ShareAudience.WORKSPACE.value)
            | Q(Exists(named), audience=ShareAudience.PEOPLE.value)
        )
        entered = open_workspaces(user).values("pk")
        return self.open_now().filter(anybody | Q(allowed, workspace__in=entered))

    def given_to(self, user: User) -> SharedChatQuerySet:
        """Those of others that this person was chosen to read, each with the title that it had then: `shared_title`."""
        named = SharedChatReader.unscoped.filter(shared=OuterRef("pk"), person=user)
        return (
            self.readable_by(user)
            .filter(Exists(named), audience=ShareAudience.PEOPLE.value)
            .annotate(shared_title=KeyTextTransform("title", "text__document"))
        )


def _membership(user: object) -> models.QuerySet[Membership]:
    """The membership that lets a person into the workspace of the row outside."""
    return Membership.unscoped.filter(
        workspace=OuterRef("workspace"), user=user, user__is_active=True, suspended_at=None
    )


class SharedChat(WorkspaceModel):
    """One conversation that others may read."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", editable=False
    )
    conversation = models.OneToOneField(
        Conversation, on_delete=models.CASCADE, related_name="shared", editable=False
    )
    audience = models.CharField(_("who can read it"), max_length=10, choices=ShareAudience.choices)
    token_hash = models.CharField(max_length=64, unique=True, editable=False)
    token = EncryptedTextField(
        editable=False, help_text=_("Its owner can copy the link at any time.")
    )
    with_files = models.BooleanField(_("with files"), default=False)
    with_calls = models.BooleanField(
        _("with tool calls"),
        default=False,
        help_text=_("What tools were asked, and what they answered."),
    )
    expires_at = models.DateTimeField(_("ends"), null=True)
    shared_at = models.DateTimeField(_("shared"), help_text=_("When its text was last updated."))

    objects = models.Manager.from_queryset(SharedChatQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        verbose_name = _("shared chat")
        verbose_name_plural = _("shared chats")
        ordering = ["-created_at", "-id"]
        indexes = [models.Index(fields=["expires_at"], name="shared_chat_ends")]
        constraints = [
            models.CheckConstraint(
                condition=Q(audience__in=ShareAudience.values), name="shared_chat_audience_known"
            )
        ]

    def __str__(self) -> str:
        return str(self._meta.verbose_name)

    @property
    def has_ended(self) -> bool:
        """Whether its date has passed."""
        return self.expires_at is not None and self.expires_at <= timezone.now()

    @property
    def is_disallowed(self) -> bool:
        """Whether it is a public link in a workspace that allows none any more. Needs `workspace` loaded."""
        return self.audience == ShareAudience.LINK.value and not self.workspace.allows_public_links


class SharedChatText(WorkspaceModel):
    """What a shared chat shows. A row of its own, so that lists need not read it."""

    shared = models.OneToOneField(
        SharedChat, on_delete=models.CASCADE, related_name="text", editable=False
    )
    end = models.UUIDField(help_text=_("The message that it ends with."))
    document = models.JSONField()

    def __str__(self) -> str:
        return str(self.shared_id)

    @property
    def value(self) -> SharedDocument:
        """The document, read.

        Raises:
            InvalidInput: it is none.
        """
        return parse_value(SharedDocument, self.document, field="document")


class SharedChatReader(WorkspaceModel):
    """A person who was chosen to read a shared chat."""

    shared = models.ForeignKey(SharedChat, on_delete=models.CASCADE, related_name="readers")
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", editable=False
    )

    class Meta(WorkspaceModel.Meta):
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["shared", "person"], name="shared_chat_reader_once")
        ]

    def __str__(self) -> str:
        return str(self.person)
