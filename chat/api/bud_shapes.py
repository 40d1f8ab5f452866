"""What programs send and get of buds."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from chat.models import Bud, BudColour, BudVersion, BudVisibility
from chat.providers.choosing import model_of
from chat.services.bud_yaml import LONGEST
from chat.tools.toolset import resolve_toolset
from chat.values import ToolProtocol
from mcp_servers.models import McpServer, McpTool


class BudModelOutput(serializers.Serializer[Any]):
    name = serializers.CharField()
    provider_id = serializers.UUIDField(allow_null=True, help_text="Null: the platform's own.")
    is_demo = serializers.BooleanField()


class BudServerOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    status = serializers.CharField()


class BudOutput(serializers.ModelSerializer[Bud]):
    """A bud; its servers are those of this workspace that it names."""

    model = serializers.SerializerMethodField()
    servers = serializers.SerializerMethodField()
    provider_id = serializers.UUIDField(allow_null=True)
    starter_prompts = serializers.ListField(child=serializers.CharField())
    mcp_config = serializers.DictField()
    parameters = serializers.DictField()
    problems = serializers.SerializerMethodField(
        help_text="Why some of its servers or tools cannot be used now, in sentences; null in lists."
    )

    class Meta:
        model = Bud
        fields = (
            "id",
            "slug",
            "name",
            "description",
            "avatar",
            "system_prompt",
            "starter_prompts",
            "provider_id",
            "model",
            "parameters",
            "mcp_config",
            "servers",
            "problems",
            "tool_protocol",
            "makes_artifacts",
            "takes_all_tools",
            "is_model_fixed",
            "is_archived",
            "colour",
            "visibility",
            "members_may_edit",
            "version",
            "created_at",
            "updated_at",
        )
        read_only_fields = fields

    @extend_schema_field(BudModelOutput)
    def get_model(self, bud: Bud) -> dict[str, Any]:
        name, is_demo = model_of(bud)
        return {"name": name, "provider_id": bud.provider_id, "is_demo": is_demo}

    @extend_schema_field(serializers.ListField(child=serializers.CharField(), allow_null=True))
    def get_problems(self, bud: Bud) -> list[str] | None:
        if getattr(self.context.get("view"), "action", "list") == "list":
            return None  # each bud costs several queries
        return list(resolve_toolset(bud, None).notices)

    @extend_schema_field(BudServerOutput(many=True))
    def get_servers(self, bud: Bud) -> list[dict[str, Any]]:
        known: dict[str, McpServer] = self.context.get("servers", {})
        named = [str(server_id) for server_id in bud.mcp_config.get("servers", [])]
        return [
            {
                "id": server_id,
                "name": known[server_id].name,
                "status": known[server_id].state.status,
            }
            for server_id in named
            if server_id in known
        ]


class BudInput(serializers.Serializer[Any]):
    """What a bud is made of. `model` is the model's name; empty: the provider's own."""

    slug = serializers.SlugField(max_length=60)
    name = serializers.CharField(max_length=100)
    description = serializers.CharField(max_length=300, allow_blank=True, required=False)
    avatar = serializers.CharField(max_length=8, required=False)
    system_prompt = serializers.CharField(max_length=50_000, allow_blank=True, required=False)
    provider_id = serializers.UUIDField(allow_null=True, required=False)
    model_name = serializers.CharField(
        max_length=200, allow_blank=True, required=False, source="model"
    )
    parameters = serializers.DictField(required=False)
    starter_prompts = serializers.ListField(
        child=serializers.CharField(max_length=300), max_length=12, required=False
    )
    mcp_config = serializers.DictField(
        required=False,
        help_text="servers, available_tools, disabled_tools, tool_choice, tool_choice_every_step, tool_exposure: `all`"
        " puts every tool into the prompt; `on_demand` lets the model look tools up and call them by name, which keeps"
        " the prompt of a bud with many servers small.",
    )
    tool_protocol = serializers.ChoiceField(
        [protocol.value for protocol in ToolProtocol],
        required=False,
        help_text="How the model is told of tools; `auto` finds out.",
    )
    makes_artifacts = serializers.BooleanField(
        required=False, help_text="Offers tools to create and change files of the conversation."
    )
    takes_all_tools = serializers.BooleanField(
        required=False,
        help_text="Uses, besides the servers it names, every server of the workspace that is meant for all buds. New buds do, unless you say no.",
    )
    is_model_fixed = serializers.BooleanField(
        required=False, help_text="People cannot choose another model in their chats."
    )
    is_archived = serializers.BooleanField(required=False)
    colour = serializers.ChoiceField(BudColour.choices, required=False)
    visibility = serializers.ChoiceField(
        BudVisibility.choices, required=False, help_text="`owner`: only you may use it."
    )
    members_may_edit = serializers.BooleanField(required=False)
    version = serializers.IntegerField(
        min_value=1,
        required=False,
        help_text="The version that you have seen. If the bud has another one by now, the answer is 409 and nothing changes.",
    )


_SKIPS_CHECKS = (
    "True: save it though the bud demands that its checks pass first. The log says that you did."
)


class BudChangeInput(BudInput):
    """What changes of a bud."""

    skip_checks = serializers.BooleanField(required=False, help_text=_SKIPS_CHECKS)


class BudVersionOutput(serializers.ModelSerializer[BudVersion]):
    """A bud as it was saved once."""

    values = serializers.DictField(read_only=True)

    class Meta:
        model = BudVersion
        fields = ("number", "values", "made_by", "note", "created_at")
        read_only_fields = fields


class RestoreVersionInput(serializers.Serializer[Any]):
    number = serializers.IntegerField(min_value=1)
    version = serializers.IntegerField(
        min_value=1, required=False, help_text="The version that you have seen, as in a change."
    )
    skip_checks = serializers.BooleanField(required=False, help_text=_SKIPS_CHECKS)


class BudYaml(serializers.Serializer[Any]):
    yaml = serializers.CharField(
        max_length=LONGEST, trim_whitespace=False, help_text="With names instead of ids."
    )


class BudImportInput(BudYaml):
    """A bud's file, and whether its checks matter."""

    skip_checks = serializers.BooleanField(required=False, help_text=_SKIPS_CHECKS)


class BudTestInput(BudInput):
    """What a test chat tries."""

    bud_id = serializers.UUIDField(
        required=False, allow_null=True, help_text="The bud that is edited; null: a new one."
    )


class CheckedDraftInput(BudInput):
    """What is checked in place of the saved values; nothing: the bud as it is saved."""

    number = serializers.IntegerField(
        min_value=1,
        required=False,
        help_text="An earlier version, in place of values: it is checked before it is restored.",
    )


class BudTestOutput(serializers.Serializer[Any]):
    conversation_id = serializers.UUIDField()


class ToolFaultsOutput(serializers.Serializer[Any]):
    server = serializers.CharField(allow_blank=True)
    tool = serializers.CharField(allow_blank=True)
    calls = serializers.IntegerField()
    failed = serializers.IntegerField()
    refused = serializers.IntegerField()


class BudQualityOutput(serializers.Serializer[Any]):
    """Numbers of the last days."""

    days = serializers.IntegerField()
    turns = serializers.IntegerField()
    people = serializers.IntegerField()
    failed = serializers.IntegerField()
    stopped = serializers.IntegerField()
    prompt_tokens = serializers.IntegerField()
    completion_tokens = serializers.IntegerField()
    cost = serializers.DecimalField(
        max_digits=20, decimal_places=6, allow_null=True, help_text="Of what has a known price."
    )
    unpriced = serializers.IntegerField(
        help_text="Questions that the cost leaves out, because a price is not known."
    )
    liked = serializers.IntegerField()
    disliked = serializers.IntegerField()
    p50_ms = serializers.IntegerField(allow_null=True)
    p95_ms = serializers.IntegerField(allow_null=True)
    tools = ToolFaultsOutput(many=True)


class BudToolOutput(serializers.ModelSerializer[McpTool]):
    """A tool that a bud may name: as `<server_id>.<name>` in `available_tools` and `disabled_tools`."""

    server_id = serializers.UUIDField(read_only=True)
    server = serializers.CharField(source="server.name", read_only=True)

    class Meta:
        model = McpTool
        fields = ("id", "server_id", "server", "name", "title", "description")
        read_only_fields = fields
