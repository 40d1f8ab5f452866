-- Words of messages. What still streams is not found yet, and costs nothing while it grows.

CREATE INDEX chat_message_words ON chat_message USING gin (to_tsvector('simple', text)) WHERE status <> 'streaming'

ANALYZE chat_message
