"""Buds, and the model providers behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxLengthValidator, MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from chat.models.shared_providers import SharedProvider, WithheldReason, origin_of
from chat.values import McpConfig, ModelParameters, ToolProtocol, parse_value
from workspaces.errors import InvalidInput
from workspaces.scoping import WorkspaceModel, WorkspaceQuerySet
from workspaces.secrets import EncryptedTextField

if TYPE_CHECKING:
    from workspaces.models import User


_PROTOCOLS: Final = [
    (ToolProtocol.AUTO.value, _("Whatever the model understands")),
    (ToolProtocol.NATIVE.value, _("Function calling")),
    (ToolProtocol.FENCED_JSON.value, _("Fenced JSON, for models without function calling")),
]


class ModelProviderQuerySet(WorkspaceQuerySet["ModelProvider"]):
    def answering(self) -> ModelProviderQuerySet:
        """Those that are on, as the workspace says, and for what is shared also the platform's owner."""
        return self.filter(is_active=True, withheld=WithheldReason.NO.value)


class ModelProvider(WorkspaceModel):
    """An OpenAI-compatible endpoint with this workspace's key, or one that the platform's owner shares with it."""

    name = models.CharField(max_length=100)
    base_url = models.URLField(
        _("base URL"), max_length=500, help_text=_("Up to and including /v1, for most providers.")
    )
    api_key = EncryptedTextField(_("API key"))
    default_model = models.CharField(max_length=200)
    is_active = models.BooleanField(default=True)
    fallback = models.ForeignKey(
        "self",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        verbose_name=_("if it fails, ask"),
        help_text=_(
            "Answers with its default model while this provider is down, has too many requests or no credit."
        ),
    )

    most_at_once = models.PositiveSmallIntegerField(
        _("requests at once"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(1000)],
        help_text=_("Further ones wait their turn for up to a minute. Leave empty for no limit."),
    )
    most_a_minute = models.PositiveIntegerField(
        _("requests a minute"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(100_000)],
        help_text=_("All people and processes together. Leave empty for no limit."),
    )

    embedding_model = models.CharField(
        max_length=200,
        blank=True,
        default="",
        db_default="",
        help_text=_(
            "With one, buds that use this provider also find passages that say the same in other words. Trellis then sends the"
            " whole text of their knowledge files to this provider, and each search. Leave empty to search by words only."
        ),
    )
    shared = models.ForeignKey(
        SharedProvider,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        editable=False,
        related_name="given",
        help_text=_("Where its address, key and limits are. Empty: it is the workspace's own."),
    )
    withheld = models.CharField(
        max_length=12,
        blank=True,
        choices=WithheldReason.choices,
        default=WithheldReason.NO.value,
        db_default=WithheldReason.NO.value,
        editable=False,
    )

    offered_models = models.JSONField(null=True, blank=True, editable=False)
    """Names that the platform's owner lets this workspace use; None: every model."""
    has_own_offer = models.BooleanField(default=False, db_default=False, editable=False)
    """Whether they said so for this workspace by name. Otherwise it follows the shared provider."""
    most_cost_a_month = models.DecimalField(
        max_digits=14,
        decimal_places=6,
        null=True,
        blank=True,
        editable=False,
        validators=[MinValueValidator(0), MaxValueValidator(99_999_999)],
    )
    """In US dollars, by list prices: what the platform's owner lets this workspace spend. None: no limit."""
    most_tokens_a_month = models.BigIntegerField(
        null=True,
        blank=True,
        editable=False,
        validators=[MinValueValidator(0), MaxValueValidator(10**15)],
    )

    objects = models.Manager.from_queryset(ModelProviderQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["workspace", "name"], name="model_provider_name_once"),
            models.UniqueConstraint(
                fields=["workspace", "shared"], name="shared_provider_given_once"
            ),
            # What is the platform's stays in the platform's row.
            models.CheckConstraint(
                condition=models.Q(shared=None) | models.Q(base_url="", api_key=None),
                name="shared_provider_not_copied",
            ),
            models.CheckConstraint(
                condition=models.Q(withheld="") | models.Q(shared__isnull=False),
                name="only_what_is_shared_is_withheld",
            ),
            models.CheckConstraint(
                condition=models.Q(shared__isnull=False)
                | models.Q(offered_models__isnull=True, has_own_offer=False),
                name="only_what_is_shared_is_offered",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """A chain of providers that ends.

        Raises:
            ValidationError: this one would stand in for itself.
        """
        behind, seen = self.fallback, {self.pk}
        while behind is not None:
            if behind.pk in seen:
                raise ValidationError(
                    {"fallback": _("A provider cannot stand in for itself, nor through others.")}
                )
            seen.add(behind.pk)
            behind = behind.fallback

    @property
    def origin(self) -> str:
        """Scheme, host and port: a stored key goes nowhere else."""
        return origin_of(self.base_url)

    @property
    def is_shared(self) -> bool:
        """Whether the platform's owner says where it is, and with which key."""
        return self.shared_id is not None

    @property
    def answers(self) -> bool:
        """Whether it is on: the same as `answering`."""
        return self.is_active and not self.withheld

    def offers(self, model: str) -> bool:
        """Whether this workspace may use a model of it: any, unless the platform's owner chose some."""
        return self.offered_models is None or model in self.offered_models


class ProviderModel(WorkspaceModel):
    """What is known of one model of a provider: what it costs, how much it reads, which tool protocol it speaks."""

    provider = models.ForeignKey(
        ModelProvider,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="known_models",
        help_text=_("Empty: the platform's own provider."),
    )
    model = models.CharField(max_length=200)
    context_tokens = models.PositiveIntegerField(
        null=True, blank=True, help_text=_("How many tokens it reads and writes at most.")
    )
    prompt_price = models.DecimalField(
        max_digits=12, decimal_places=6, null=True, blank=True, help_text=_("Per million tokens.")
    )
    cached_price = models.DecimalField(
        max_digits=12,
        decimal_places=6,
        null=True,
        blank=True,
        help_text=_("Per million prompt tokens that came out of the provider's cache."),
    )
    completion_price = models.DecimalField(
        max_digits=12, decimal_places=6, null=True, blank=True, help_text=_("Per million tokens.")
    )
    sees_pictures = models.BooleanField(
        null=True,
        blank=True,
        choices=[(True, _("Yes")), (False, _("No"))],
        help_text=_("Unknown: the first picture tries it."),
    )
    calls_tools = models.BooleanField(
        _("calls tools"),
        null=True,
        blank=True,
        choices=[(True, _("Yes")), (False, _("No"))],
        help_text=_("No: buds with this model get no tools. Automatic: what the provider tells."),
    )
    reasons = models.BooleanField(
        _("reasons"),
        null=True,
        blank=True,
        choices=[(True, _("Yes")), (False, _("No"))],
        help_text=_(
            "Whether it thinks before it answers: the length of an answer then counts its thoughts."
            " Automatic: what the provider tells."
        ),
    )
    told_calls_tools = models.BooleanField(null=True, editable=False)
    """What its provider told when it was last kept."""
    told_reasons = models.BooleanField(null=True, editable=False)
    learned_protocol = models.CharField(
        max_length=12,
        blank=True,
        choices=_PROTOCOLS,
        help_text=_("What it was found to need; empty: nothing has been found out."),
    )

    class Meta(WorkspaceModel.Meta):
        ordering = ["model", "id"]
        constraints = [
            models.UniqueConstraint(fields=["provider", "model"], name="provider_model_once"),
            models.UniqueConstraint(
                fields=["workspace", "model"],
                condition=models.Q(provider=None),
                name="platform_model_once",
            ),
        ]

    def __str__(self) -> str:
        return self.model

    @property
    def tools_known(self) -> bool | None:
        """Whether it calls tools: as an administrator says, else as its provider tells."""
        return self.told_calls_tools if self.calls_tools is None else self.calls_tools

    @property
    def reasoning_known(self) -> bool | None:
        """The same of thinking before it answers."""
        return self.told_reasons if self.reasons is None else self.reasons


class BudColour(models.TextChoices):
    """What a bud's picture stands on."""

    GREY = "grey", _("Grey")
    GREEN = "green", _("Green")
    BLUE = "blue", _("Blue")
    VIOLET = "violet", _("Violet")
    PINK = "pink", _("Pink")
    RED = "red", _("Red")
    ORANGE = "orange", _("Orange")
    YELLOW = "yellow", _("Yellow")


class BudVisibility(models.TextChoices):
    """Who may use a bud."""

    WORKSPACE = "workspace", _("Everybody in the workspace")
    OWNER = "owner", _("Only me")


_Rows = TypeVar("_Rows", bound="models.QuerySet[Any, Any]")


class BudQuerySet(WorkspaceQuerySet["Bud"]):
    def visible_to(self, user: User) -> BudQuerySet:
        """Those of the workspace and one's own; of drafts only one's own."""
        return self.seen_by(super().visible_to(user), user.pk)

    def usable_by(self, user_id: object) -> BudQuerySet:
        """The same where the workspace is known to be the person's."""
        return self.seen_by(self, user_id)

    @staticmethod
    def seen_by(rows: _Rows, user_id: object) -> _Rows:
        """Leave out what is somebody else's alone."""
        shared = models.Q(visibility=BudVisibility.WORKSPACE.value, is_draft=False)
        return rows.filter(shared | models.Q(owner_id=user_id))

    def tried(self) -> BudQuerySet:
        """Unsaved ones that somebody tries in the editor."""
        return self.filter(is_draft=True, is_sandboxed=False)

    def shared(self) -> BudQuerySet:
        """Those of the whole workspace."""
        return self.filter(visibility=BudVisibility.WORKSPACE.value, is_draft=False)


class Bud(WorkspaceModel):
    """An assistant: a system prompt, a model, and the tools it may use."""

    slug = models.SlugField(max_length=60)
    name = models.CharField(max_length=100)
    description = models.CharField(max_length=300, blank=True)
    avatar = models.CharField(max_length=8, default="🌱", help_text=_("One emoji."))
    system_prompt = models.TextField(blank=True, validators=[MaxLengthValidator(50_000)])
    provider = models.ForeignKey(
        ModelProvider,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="buds",
        help_text=_("Empty: the platform's own model."),
    )
    model = models.CharField(
        max_length=200, blank=True, help_text=_("Empty: the provider's default model.")
    )
    parameters = models.JSONField(default=dict, blank=True)
    starter_prompts = models.JSONField(default=list, blank=True)
    mcp_config = models.JSONField(_("MCP configuration"), default=dict, blank=True)
    tool_protocol = models.CharField(
        max_length=12,
        choices=_PROTOCOLS,
        default=ToolProtocol.AUTO.value,
    )
    makes_artifacts = models.BooleanField(
        default=False, help_text=_("Offers tools to create and change files of the conversation.")
    )
    is_model_fixed = models.BooleanField(
        _("fix the model"),
        default=False,
        db_default=False,
        help_text=_("People cannot choose another model in their chats with this bud."),
    )
    takes_all_tools = models.BooleanField(
        _("takes all tools"),
        default=False,
        db_default=False,
        help_text=_(
            "Uses the servers below and every server of the workspace that is meant for all buds, also those added later."
        ),
    )
    is_archived = models.BooleanField(default=False)
    has_knowledge = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text=_("Whether it has files of its own; a draft: whether its bud has."),
    )
    colour = models.CharField(
        max_length=10,
        choices=BudColour.choices,
        default=BudColour.GREY.value,
        db_default=BudColour.GREY.value,
    )
    visibility = models.CharField(
        _("who may use it"),
        max_length=10,
        choices=BudVisibility.choices,
        default=BudVisibility.WORKSPACE.value,
        db_default=BudVisibility.WORKSPACE.value,
    )
    members_may_edit = models.BooleanField(
        _("members may edit it"),
        default=False,
        db_default=False,
        help_text=_("Every member may change this bud. Otherwise only administrators may."),
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        editable=False,
        related_name="+",
        help_text=_("Who made it, and whose it is if only they may use it."),
    )
    version = models.PositiveIntegerField(default=1, db_default=1, editable=False)
    is_draft = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text=_("What somebody tries in the editor: in no list, and nobody else's."),
    )
    is_sandboxed = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text=_("Checks run with it: in its chats nothing is called that may change data."),
    )
    draft_of = models.ForeignKey(
        "self", on_delete=models.CASCADE, null=True, editable=False, related_name="drafts"
    )

    objects = models.Manager.from_queryset(BudQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["name", "id"]
        constraints = [models.UniqueConstraint(fields=["workspace", "slug"], name="bud_slug_once")]

    def __str__(self) -> str:
        return self.name

    def is_usable_by(self, user_id: object) -> bool:
        """The same as `usable_by`, of a row that is at hand."""
        is_shared = self.visibility == BudVisibility.WORKSPACE.value and not self.is_draft
        return is_shared or self.owner_id == user_id

    @property
    def mcp(self) -> McpConfig:
        return parse_value(McpConfig, self.mcp_config, field="mcp_config")

    @property
    def model_parameters(self) -> ModelParameters:
        return parse_value(ModelParameters, self.parameters, field="parameters")

    def clean(self) -> None:
        super().clean()
        try:
            _read = self.mcp, self.model_parameters
        except InvalidInput as error:
            raise ValidationError(dict(error.fields)) from error
        prompts = self.starter_prompts
        if not isinstance(prompts, list) or not all(isinstance(p, str) for p in prompts):
            raise ValidationError({"starter_prompts": _("A list of texts, please.")})
        if len(prompts) > 12 or any(len(p) > 300 for p in prompts):
            raise ValidationError({"starter_prompts": _("At most 12, of at most 300 characters.")})


class BudVersion(WorkspaceModel):
    """A bud as it was saved once."""

    bud = models.ForeignKey(Bud, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    values = models.JSONField(help_text=_("What people set, by the names of the fields."))
    made_by = models.CharField(max_length=254, help_text=_("Who saved it, as the log names them."))
    note = models.CharField(max_length=200, blank=True)

    class Meta(WorkspaceModel.Meta):
        ordering = ["-number"]
        constraints = [models.UniqueConstraint(fields=["bud", "number"], name="bud_version_once")]

    def __str__(self) -> str:
        return f"{self.bud_id} {self.number}"
