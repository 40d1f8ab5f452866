"""The chat for programs: the same services and shapes as the web app's."""

from chat.api.artifacts import ArtifactViewSet
from chat.api.audit_turns import AuditTurnViewSet
from chat.api.buds import BudViewSet
from chat.api.checks import CheckRunViewSet, CheckViewSet
from chat.api.conversations import ConversationViewSet
from chat.api.data_copies import DataCopyViewSet
from chat.api.drafts import DraftViewSet
from chat.api.folders import FolderViewSet
from chat.api.imports import ChatImportViewSet
from chat.api.inputs import InputRequestViewSet
from chat.api.knowledge import KnowledgeViewSet
from chat.api.messages import AttachmentViewSet, MessageViewSet, QueuedMessageViewSet
from chat.api.models import ModelViewSet
from chat.api.oversight import MemberShareViewSet, MemberToolPermissionViewSet, RatingViewSet
from chat.api.permissions import ToolPermissionViewSet
from chat.api.pins import PinViewSet
from chat.api.platform import platform_routes
from chat.api.provider_models import ProviderModelViewSet
from chat.api.providers import ProviderViewSet
from chat.api.push import PushDeviceViewSet
from chat.api.reminders import ReminderViewSet
from chat.api.search import SearchViewSet
from chat.api.sharing import SharedChatViewSet
from chat.api.spending import MemberSpendingViewSet, SpendingLimitViewSet
from chat.api.turns import ToolCallViewSet, TurnViewSet
from chat.api.usage import UsageViewSet
from chat.api.waiting import WaitingViewSet
from chat.api.webhooks import WebhookViewSet

__all__ = ["platform_routes", "routes"]

routes = [
    ("buds", BudViewSet),
    ("knowledge", KnowledgeViewSet),
    ("checks", CheckViewSet),
    ("check-runs", CheckRunViewSet),
    ("models", ModelViewSet),
    ("providers", ProviderViewSet),
    ("provider-models", ProviderModelViewSet),
    ("conversations", ConversationViewSet),
    ("shared-chats", SharedChatViewSet),
    ("member-shares", MemberShareViewSet),
    ("member-tool-permissions", MemberToolPermissionViewSet),
    ("ratings", RatingViewSet),
    ("folders", FolderViewSet),
    ("chat-imports", ChatImportViewSet),
    ("data-copies", DataCopyViewSet),
    ("drafts", DraftViewSet),
    ("pins", PinViewSet),
    ("push-devices", PushDeviceViewSet),
    ("reminders", ReminderViewSet),
    ("messages", MessageViewSet),
    ("attachments", AttachmentViewSet),
    ("queued-messages", QueuedMessageViewSet),
    ("artifacts", ArtifactViewSet),
    ("turns", TurnViewSet),
    ("audit-turns", AuditTurnViewSet),
    ("tool-calls", ToolCallViewSet),
    ("input-requests", InputRequestViewSet),
    ("tool-permissions", ToolPermissionViewSet),
    ("search", SearchViewSet),
    ("usage", UsageViewSet),
    ("spending-limits", SpendingLimitViewSet),
    ("member-spending", MemberSpendingViewSet),
    ("waiting", WaitingViewSet),
    ("webhooks", WebhookViewSet),
]
