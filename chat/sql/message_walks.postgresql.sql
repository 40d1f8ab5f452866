-- What a search walks: the newest messages of a chat, by their ids; and which pages of the words' table are of which time, so
-- that of words in few messages only the newest are fetched. That index is of texts, so that nothing else uses it: a list of
-- ids would read many pages by it. A blank line ends a statement.

CREATE INDEX IF NOT EXISTS chat_message_newest ON chat_message (conversation_id, id)

CREATE INDEX IF NOT EXISTS chat_message_lexemes_times ON chat_message_lexemes USING brin ((CAST(message_id AS text)))
WITH (pages_per_range = 16, autosummarize = on)
