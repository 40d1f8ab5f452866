"""Rows of the chat: the truth that sockets only tell of."""

from chat.models.artifacts import Artifact, ArtifactVersion
from chat.models.attachments import Attachment
from chat.models.buds import (
    Bud,
    BudColour,
    BudVersion,
    BudVisibility,
    ModelProvider,
    ProviderModel,
)
from chat.models.checks import (
    BudCheck,
    CheckPlan,
    CheckResult,
    CheckRun,
    Repeat,
    ResultStatus,
    RunStatus,
)
from chat.models.conversations import Conversation, Message, QueuedMessage
from chat.models.data_copies import OPEN_COPIES, DataCopy, DataCopyPart
from chat.models.drafts import Draft
from chat.models.folders import Folder
from chat.models.imports import OPEN_IMPORTS, ChatImport
from chat.models.knowledge import (
    KnowledgeFile,
    KnowledgePassage,
    KnowledgePreparation,
    PassageVector,
)
from chat.models.pins import Pin
from chat.models.provider_lists import ListChanges, ProviderList, SharedProviderList
from chat.models.push import PushDevice, PushMessage
from chat.models.readings import FileReading
from chat.models.reminders import ReminderChoice, ReminderMail
from chat.models.requests import ModelRequest
from chat.models.shared_chats import ShareAudience, SharedChat, SharedChatReader, SharedChatText
from chat.models.shared_providers import OfferedModels, SharedProvider, WithheldReason
from chat.models.spending import (
    MemberSpendingLimit,
    MonthlySpending,
    SpendingHold,
    SpendingPolicy,
)
from chat.models.turns import ToolCall, Turn
from chat.models.webhooks import WebhookDelivery, WebhookEndpoint

__all__ = [
    "OPEN_COPIES",
    "OPEN_IMPORTS",
    "Artifact",
    "ArtifactVersion",
    "Attachment",
    "Bud",
    "BudCheck",
    "BudColour",
    "BudVersion",
    "BudVisibility",
    "ChatImport",
    "CheckPlan",
    "CheckResult",
    "CheckRun",
    "Conversation",
    "DataCopy",
    "DataCopyPart",
    "Draft",
    "FileReading",
    "Folder",
    "KnowledgeFile",
    "KnowledgePassage",
    "KnowledgePreparation",
    "ListChanges",
    "MemberSpendingLimit",
    "Message",
    "ModelProvider",
    "ModelRequest",
    "MonthlySpending",
    "OfferedModels",
    "PassageVector",
    "Pin",
    "ProviderList",
    "ProviderModel",
    "PushDevice",
    "PushMessage",
    "QueuedMessage",
    "ReminderChoice",
    "ReminderMail",
    "Repeat",
    "ResultStatus",
    "RunStatus",
    "ShareAudience",
    "SharedChat",
    "SharedChatReader",
    "SharedChatText",
    "SharedProvider",
    "SharedProviderList",
    "SpendingHold",
    "SpendingPolicy",
    "ToolCall",
    "Turn",
    "WebhookDelivery",
    "WebhookEndpoint",
    "WithheldReason",
]
