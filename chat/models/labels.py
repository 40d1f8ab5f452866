"""What people call this app's tables and columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from workspaces.words.texts import gettext_lazy as _

if TYPE_CHECKING:
    from workspaces.words.columns import Columns, Tables

COLUMNS: Final[Columns] = {
    "added_by": _("added by"),
    "asked_by": _("asked by"),
    "avatar": _("icon"),
    "cached_price": _("price of cached prompt tokens"),
    "characters": _("characters"),
    "chosen_models": _("models that workspaces may use"),
    "colour": _("colour"),
    "completion_price": _("price of answers' tokens"),
    "content_type": _("kind of file"),
    "context_tokens": _("context window (tokens)"),
    "cost": _("cost a month"),
    "default_model": _("default model"),
    "draft_of": _("draft of"),
    "embedding_model": _("embedding model"),
    "events": _("events"),
    "has_knowledge": _("has files of its own"),
    "has_own_offer": _("has a choice of models of its own"),
    "is_archived": _("archived"),
    "is_cut": _("kept in part"),
    "is_draft": _("draft"),
    "is_sandboxed": _("calls nothing that may change data"),
    "last_delivered_at": _("last delivered"),
    "learned_protocol": _("how it learns of tools"),
    "lines": _("lines"),
    "makes_artifacts": _("can create and change files of the chat"),
    "member_cost": _("cost a month of each member"),
    "member_tokens": _("tokens a month of each member"),
    "most_a_minute": _("requests a minute"),
    "most_at_once": _("requests at once"),
    "most_cost_a_month": _("most cost a month"),
    "most_tokens_a_month": _("most tokens a month"),
    "next_at": _("next one"),
    "offer": _("models that it offers"),
    "offered_models": _("models that this workspace may use"),
    "outline": _("outline"),
    "path": _("place among the files"),
    "prompt_price": _("price of prompt tokens"),
    "recordings": _("answers of tools"),
    "sees_pictures": _("sees pictures"),
    "sha256": _("SHA-256"),
    "shared": _("shared provider"),
    "starter_prompts": _("starter prompts"),
    "system_prompt": _("instructions"),
    "tokens": _("tokens a month"),
    "tool_protocol": _("how the model is told of tools"),
    "trouble": _("why they did not run"),
    "warn_percent": _("warn at (per cent)"),
    "withheld": _("withheld"),
}

TABLES: Final[Tables] = {
    "Bud": (_("bud"), _("buds")),
    "BudCheck": (None, _("checks")),
    "CheckPlan": (None, _("schedules of checks")),
    "Conversation": (_("conversation"), _("conversations")),
    "Folder": (_("folder"), _("folders")),
    "KnowledgeFile": (_("knowledge file"), _("knowledge files")),
    "MemberSpendingLimit": (None, _("spending limits of members")),
    "Message": (_("message"), _("messages")),
    "ModelProvider": (_("model provider"), _("model providers")),
    "ProviderModel": (_("provider model"), _("provider models")),
    "SharedProvider": (_("shared provider"), _("shared providers")),
    "SpendingPolicy": (None, _("spending limits")),
    "ToolCall": (_("tool call"), _("tool calls")),
    "Turn": (_("turn"), _("turns")),
    "WebhookEndpoint": (_("webhook endpoint"), _("webhook endpoints")),
}
