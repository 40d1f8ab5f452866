-- `message_children` begins with the parent too.

DROP INDEX IF EXISTS chat_message_parent_id_d93c704f
