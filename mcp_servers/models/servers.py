"""Configured servers, those of the platform among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _
from uuid_utils.compat import uuid7

from mcp_servers.client import transports
from mcp_servers.client.values import Protocol
from mcp_servers.models import programs
from mcp_servers.models.connection_config import ConnectionConfig
from mcp_servers.models.form_errors import as_form_errors
from mcp_servers.models.server_credentials import AuthType, ServerCredentials
from mcp_servers.models.server_questions import ServerQuestions
from mcp_servers.models.server_state import ServerState
from mcp_servers.models.stdio_programs import StdioProgram
from workspaces import outbound
from workspaces.errors import InvalidEndpoint, InvalidInput
from workspaces.scoping import WorkspaceModel, WorkspaceQuerySet

if TYPE_CHECKING:
    from workspaces.models import User

MAX_NAME_LENGTH = 60


class ServerScope(models.TextChoices):
    """Where a server's definition comes from, and so who may change it."""

    GLOBAL = "global", _("The platform")
    WORKSPACE = "workspace", _("Workspace")
    PERSONAL = "personal", _("Personal")


class LogLevel(models.TextChoices):
    """From which level on a server's own log messages are kept in its trace."""

    OFF = "", _("None")
    DEBUG = "debug", _("Debug")
    INFO = "info", _("Info")
    NOTICE = "notice", _("Notice")
    WARNING = "warning", _("Warning")
    ERROR = "error", _("Error")


class GlobalServer(models.Model):
    """A server of the platform's own file, as far as workspaces may know it.

    How it is reached, and with which secrets, stays in the file and in the memory of the processes that read it.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=MAX_NAME_LENGTH, unique=True)
    transport = models.CharField(max_length=20, choices=transports.choices)
    target_label = models.CharField(max_length=500, blank=True)
    definition_hash = models.CharField(max_length=64)
    is_required = models.BooleanField(
        default=False, help_text=_("Every workspace has it, and cannot switch it off.")
    )
    is_present = models.BooleanField(default=True, help_text=_("Whether the file still names it."))
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name"]
        verbose_name = _("global server")

    def __str__(self) -> str:
        return self.name


class McpServerQuerySet(WorkspaceQuerySet["McpServer"]):
    """Servers with their state, and the one rule on whose personal ones anybody sees."""

    def visible_to(self, user: User) -> Self:
        """Those of the workspace, and this person's own."""
        return super().visible_to(user).filter(models.Q(owner__isnull=True) | models.Q(owner=user))

    def shared(self) -> Self:
        """Those that belong to nobody in particular."""
        return self.filter(owner__isnull=True)

    def _scoped(self) -> Self:
        return super()._scoped().select_related("state")


class McpServer(ServerCredentials, ServerQuestions, WorkspaceModel):
    """An MCP server that a workspace, or one person in it, uses: what people entered.

    Its bases have its credentials, and what it may ask while a tool runs. How it is stands in its `state`.
    """

    name = models.CharField(
        max_length=MAX_NAME_LENGTH,
        help_text=_("Shown to people, and put before the names of its tools."),
    )
    scope = models.CharField(
        max_length=10, choices=ServerScope.choices, default=ServerScope.WORKSPACE, editable=False
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.CASCADE,
        related_name="+",
        editable=False,
    )
    """Whose personal server it is; nobody's otherwise."""
    global_server = models.ForeignKey(
        GlobalServer, null=True, on_delete=models.PROTECT, related_name="+", editable=False
    )
    """What this row switches on for its workspace, if it is one of the platform's."""
    hosted_by = models.CharField(max_length=10, blank=True, editable=False)
    """The provider that runs it and alone says where it is, "klavis"; empty: it has an address of its own."""
    transport = models.CharField(max_length=20, choices=transports.choices, default=transports.AUTO)
    protocol = models.CharField(
        max_length=12,
        choices=[
            (Protocol.AUTO.value, _("Automatic")),
            (Protocol.LEGACY.value, _("With sessions (until 2025-11-25)")),
            (Protocol.MODERN.value, _("Stateless (2026-07-28)")),
        ],
        default=Protocol.AUTO.value,
    )
    url = models.CharField(_("URL"), max_length=outbound.MAX_URL_LENGTH, blank=True)
    program = models.ForeignKey(
        StdioProgram, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    parameters = models.JSONField(default=dict, blank=True)
    connection_config = models.JSONField(default=dict, blank=True)
    is_active = models.BooleanField(_("active"), default=True)
    is_used_everywhere = models.BooleanField(
        default=False,
        db_default=False,
        help_text=_(
            "In every bud that takes all tools; of a person's own server: in all their chats."
        ),
    )
    is_blocked = models.BooleanField(default=False, editable=False)
    """An administrator switched somebody's own server off; its owner cannot switch it on again."""
    trusts_annotations = models.BooleanField(
        default=False,
        help_text=_(
            "Whether what the server says about its tools may make them run without asking."
        ),
    )
    allows_new_tools = models.BooleanField(
        default=False,
        help_text=_("Whether tools that appear later may be used without somebody accepting them."),
    )
    uses_instructions = models.BooleanField(
        default=False,
        help_text=_(
            "Whether the server's own instructions are shown to the model, marked as the server's."
        ),
    )
    log_level = models.CharField(
        max_length=10, choices=LogLevel.choices, default=LogLevel.INFO, blank=True
    )

    objects = models.Manager.from_queryset(McpServerQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["name", "id"]
        verbose_name = _("MCP server")
        verbose_name_plural = _("MCP servers")
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "name"],
                condition=models.Q(owner__isnull=True),
                name="mcp_server_name_in_workspace",
            ),
            models.UniqueConstraint(
                fields=["workspace", "owner", "name"],
                condition=models.Q(owner__isnull=False),
                name="mcp_server_name_of_owner",
            ),
            models.UniqueConstraint(
                fields=["workspace", "global_server"], name="mcp_server_global_once"
            ),
            models.CheckConstraint(
                condition=models.Q(scope="personal", owner__isnull=False)
                | (~models.Q(scope="personal") & models.Q(owner__isnull=True)),
                name="mcp_server_personal_has_owner",
            ),
            models.UniqueConstraint(fields=["workspace", "id"], name="mcp_server_id_in_workspace"),
        ]

    def __str__(self) -> str:
        return self.name

    def save(self, **options: Any) -> None:
        is_new = self._state.adding
        super().save(**options)
        if is_new:
            ServerState(server=self, workspace_id=self.workspace_id).save(force_insert=True)

    @property
    def known_transport(self) -> str:
        """The transport that is used, as in the log; empty where it is found by trying and none has worked yet."""
        is_found = self.transport == transports.AUTO
        return self.state.resolved_transport if is_found else self.transport

    @property
    def waits_for_people(self) -> bool:
        """Whether people sign in to it; anything else that it is shown is set by whoever manages it."""
        return self.auth_type == AuthType.OAUTH or bool(self.hosted_by)

    def clean(self) -> None:
        as_form_errors(self.check_values)

    def check_values(self) -> None:
        """Check what the columns' types cannot say. Secrets are checked where they are set.

        Raises:
            InvalidInput: names the fields that are wrong.
        """
        ConnectionConfig.read(self.connection_config)
        if self.scope == ServerScope.GLOBAL:
            if self.url or self.program is not None or self.parameters:
                raise InvalidInput(
                    fields={"url": [_("The platform's file sets the address of this server.")]}
                )
            return
        if self.hosted_by:
            self._check_hosted()
            return
        if self.transport == transports.STDIO:
            if self.url:
                raise InvalidInput(fields={"url": [_("A program has no URL. Leave it empty.")]})
            if self.program is None:
                raise InvalidInput(fields={"program": [_("Pick a program from the catalogue.")]})
            programs.check_values(self.program.typed_parameters(), self.parameters)
            return
        self._check_is_no_program()
        try:
            outbound.parse_endpoint(self.url, schemes=transports.schemes_of(self.transport))
        except InvalidEndpoint as error:
            raise InvalidInput(fields={"url": [error.message]}) from error

    def _check_hosted(self) -> None:
        """Refuse what says where it is, how it is reached or how one signs in to it: that is its provider's word."""
        if self.url:
            raise InvalidInput(fields={"url": [_("The provider sets the address of this server.")]})
        self._check_is_no_program()
        if self.transport != transports.STREAMABLE_HTTP:
            raise InvalidInput(
                fields={"transport": [_("The provider sets the transport of this server.")]}
            )
        if self.auth_type != AuthType.NONE or self.headers or self.auth_config:
            raise InvalidInput(
                fields={"auth_type": [_("The provider handles sign-in for this server.")]}
            )

    def _check_is_no_program(self) -> None:
        if self.program is not None or self.parameters:
            raise InvalidInput(
                fields={"program": [_("Only servers that are programs can have this.")]}
            )

    @property
    def config(self) -> ConnectionConfig:
        """Times and limits as a value."""
        return ConnectionConfig.read(self.connection_config)
