-- The newest messages of a chat, by their ids: a search in some chats walks them. A blank line ends a statement.

CREATE INDEX IF NOT EXISTS chat_message_newest ON chat_message (conversation_id, id)
