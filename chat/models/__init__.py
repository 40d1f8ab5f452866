"""Rows of the chat: the truth that sockets only tell of."""

from chat.models.attachments import Attachment
from chat.models.buds import Bud, ModelProvider
from chat.models.conversations import Conversation, Message
from chat.models.turns import ToolCall, Turn

__all__ = ["Attachment", "Bud", "Conversation", "Message", "ModelProvider", "ToolCall", "Turn"]
