"""The platform's catalogue of programs that serve MCP over stdio."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext_lazy as _
from uuid_utils.compat import uuid7

from mcp_servers.models import programs, version_pins
from mcp_servers.models.form_errors import as_form_errors


class StdioProgram(models.Model):
    """A program of the platform's catalogue; only the platform's owner edits it, workspaces pick from it."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    slug = models.SlugField(unique=True)
    title = models.CharField(max_length=100)
    description = models.TextField(blank=True)
    command = models.CharField(
        max_length=500,
        help_text=_("An absolute path, or the word python for the platform's own interpreter."),
    )
    args = models.JSONField(
        _("arguments"),
        default=list,
        blank=True,
        help_text=_('A list of texts; "{name}" is replaced by that parameter.'),
    )
    parameters = models.JSONField(
        default=list,
        blank=True,
        help_text=_(
            'A list of {"name", "title", "type": "word" | "text" | "integer" | "choice", …}.'
        ),
    )
    env_names = models.JSONField(
        _("environment"),
        default=list,
        blank=True,
        help_text=_("Names of variables that a workspace may set."),
    )
    is_enabled = models.BooleanField(_("on offer"), default=True)
    file_hash = models.CharField(max_length=64, blank=True, editable=False)
    """Over the files it runs, as they were when the owner put it here; empty: to be taken at the next check."""
    problem = models.TextField(blank=True, editable=False)
    """Why it is not started, in plain words."""
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["title"]
        verbose_name = _("program")
        verbose_name_plural = _("program catalogue")

    def __str__(self) -> str:
        return self.title

    def clean(self) -> None:
        as_form_errors(
            lambda: programs.check_program(
                command=self.command,
                args=self.args,
                parameters=self.parameters,
                env_names=self.env_names,
            )
        )
        reason = version_pins.version_problem(self.command, self.args)
        if reason:
            raise ValidationError({"args": [reason]})

    def typed_parameters(self) -> tuple[programs.Parameter, ...]:
        """The parameters as values."""
        return programs.read_parameters(self.parameters)
