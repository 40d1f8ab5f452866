"""Pages around the chat: buds, models, shared chats, settings, and their forms."""
