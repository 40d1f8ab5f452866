"""Configured servers, and the platform's catalogue of programs."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.db import models
from uuid_utils.compat import uuid7

from mcp_servers import catalogue, outbound
from mcp_servers.connection_config import ConnectionConfig
from mcp_servers.errors import InvalidEndpoint
from mcp_servers.values import Protocol
from workspaces.errors import DomainError, InvalidInput
from workspaces.scoping import WorkspaceManager, WorkspaceModel
from workspaces.secrets import EncryptedJSONField

MAX_NAME_LENGTH = 60


class StdioProgram(models.Model):
    """A program of the platform's catalogue; only the platform's owner edits it, workspaces pick from it."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    slug = models.SlugField(unique=True)
    title = models.CharField(max_length=100)
    description = models.TextField(blank=True)
    command = models.CharField(
        max_length=500,
        help_text="An absolute path, or the word python for the platform's own interpreter.",
    )
    args = models.JSONField(
        "arguments",
        default=list,
        blank=True,
        help_text='A list of texts; "{name}" is replaced by that parameter.',
    )
    parameters = models.JSONField(
        default=list,
        blank=True,
        help_text='A list of {"name", "title", "type": "word" | "integer" | "choice", …}.',
    )
    env_names = models.JSONField(
        "environment",
        default=list,
        blank=True,
        help_text="Names of variables that a workspace may set.",
    )
    is_enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["title"]
        verbose_name = "program"
        verbose_name_plural = "program catalogue"

    def __str__(self) -> str:
        return self.title

    def clean(self) -> None:
        _as_form_errors(
            lambda: catalogue.check_program(
                command=self.command,
                args=self.args,
                parameters=self.parameters,
                env_names=self.env_names,
            )
        )

    def typed_parameters(self) -> tuple[catalogue.Parameter, ...]:
        """The parameters as values."""
        return catalogue.read_parameters(self.parameters)


class Transport(models.TextChoices):
    STREAMABLE_HTTP = "streamable_http", "Streamable HTTP"
    STDIO = "stdio", "Program"


class AuthType(models.TextChoices):
    NONE = "none", "None"
    BEARER = "bearer", "Bearer token"
    API_KEY = "api_key", "API key in a header"
    BASIC = "basic", "User name and password"


class ServerStatus(models.TextChoices):
    DISCONNECTED = "disconnected", "Disconnected"
    CONNECTING = "connecting", "Connecting"
    CONNECTED = "connected", "Connected"
    AUTH_REQUIRED = "auth_required", "Needs sign-in"
    ERROR = "error", "Error"


class McpServer(WorkspaceModel):
    """An MCP server that a workspace uses."""

    name = models.CharField(
        max_length=MAX_NAME_LENGTH,
        help_text="Shown to people, and put before the names of its tools.",
    )
    transport = models.CharField(
        max_length=20, choices=Transport.choices, default=Transport.STREAMABLE_HTTP
    )
    protocol = models.CharField(
        max_length=12,
        choices=[
            (Protocol.AUTO.value, "Automatic"),
            (Protocol.LEGACY.value, "With sessions (until 2025-11-25)"),
            (Protocol.MODERN.value, "Stateless (2026-07-28)"),
        ],
        default=Protocol.AUTO.value,
    )
    url = models.CharField("URL", max_length=outbound.MAX_URL_LENGTH, blank=True)
    program = models.ForeignKey(
        StdioProgram, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    parameters = models.JSONField(default=dict, blank=True)
    headers = EncryptedJSONField()
    env = EncryptedJSONField("environment")
    auth_type = models.CharField(
        "authentication", max_length=10, choices=AuthType.choices, default=AuthType.NONE
    )
    auth_config = EncryptedJSONField("credentials")
    connection_config = models.JSONField(default=dict, blank=True)
    is_active = models.BooleanField("active", default=True)
    trusts_annotations = models.BooleanField(
        default=False,
        help_text="Whether what the server says about its tools may make them run without asking.",
    )
    allows_new_tools = models.BooleanField(
        default=False,
        help_text="Whether tools that appear later may be used without somebody accepting them.",
    )

    status = models.CharField(
        max_length=15,
        choices=ServerStatus.choices,
        default=ServerStatus.DISCONNECTED,
        editable=False,
    )
    status_reason = models.TextField(blank=True, editable=False)
    last_connected_at = models.DateTimeField(null=True, editable=False)
    last_checked_at = models.DateTimeField(null=True, editable=False)
    next_check_at = models.DateTimeField(null=True, editable=False)
    consecutive_failures = models.PositiveIntegerField(default=0, editable=False)
    latency_ms = models.PositiveIntegerField(null=True, editable=False)
    server_info = models.JSONField(default=dict, editable=False)
    protocol_revision = models.CharField(max_length=20, blank=True, editable=False)
    capabilities = models.JSONField(default=dict, editable=False)
    instructions = models.TextField(blank=True, editable=False)
    tools_listed_at = models.DateTimeField(null=True, editable=False)

    objects = WorkspaceManager()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["name", "id"]
        verbose_name = "MCP server"
        verbose_name_plural = "MCP servers"
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "name"], name="mcp_server_name_in_workspace"
            ),
            models.UniqueConstraint(fields=["workspace", "id"], name="mcp_server_id_in_workspace"),
        ]
        indexes = [
            models.Index(fields=["is_active", "next_check_at"], name="mcp_server_due_for_check")
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        _as_form_errors(self.check_values)

    def check_values(self) -> None:
        """Check what the columns' types cannot say. Secrets are checked where they are set.

        Raises:
            InvalidInput: names the fields that are wrong.
        """
        ConnectionConfig.read(self.connection_config)
        if self.transport == Transport.STDIO:
            if self.url:
                raise InvalidInput(fields={"url": ["A program has no URL."]})
            if self.program is None:
                raise InvalidInput(fields={"program": ["Pick a program from the catalogue."]})
            catalogue.check_values(self.program.typed_parameters(), self.parameters)
            return
        if self.program is not None or self.parameters:
            raise InvalidInput(fields={"program": ["Only a server that is a program has one."]})
        try:
            outbound.parse_endpoint(self.url)
        except InvalidEndpoint as error:
            raise InvalidInput(fields={"url": [error.message]}) from error

    @property
    def config(self) -> ConnectionConfig:
        """Times and limits as a value."""
        return ConnectionConfig.read(self.connection_config)

    @property
    def target_label(self) -> str:
        """Where it is, without anything secret: the URL without its query, or the program's title."""
        if self.transport == Transport.STDIO:
            return self.program.title if self.program is not None else ""
        return self.url.partition("?")[0]

    @property
    def server_version(self) -> str:
        """What the server calls itself."""
        info: dict[str, Any] = self.server_info
        return f"{info.get('name', '')} {info.get('version', '')}".strip()


def _as_form_errors(check: Any) -> None:
    try:
        check()
    except InvalidInput as error:
        raise ValidationError(
            {_form_field(name): texts for name, texts in error.fields.items()}
        ) from error
    except DomainError as error:
        raise ValidationError(error.message) from error


def _form_field(name: str) -> str:
    return name.partition(".")[0]
