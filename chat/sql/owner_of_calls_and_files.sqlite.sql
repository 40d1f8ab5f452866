-- Whose a call of a tool and an attached file are, beside them: so a search reads a person's own and nobody else's,
-- however often others call the tool. A conversation never changes its owner. Run this again in each migration that makes one
-- of these tables anew: SQLite forgets its triggers then. A blank line ends a statement.

DROP TRIGGER IF EXISTS chat_toolcall_owner_new

CREATE TRIGGER chat_toolcall_owner_new AFTER INSERT ON chat_toolcall WHEN new.owner_id IS NULL
BEGIN
    UPDATE chat_toolcall SET owner_id = (
        SELECT c.owner_id FROM chat_message m JOIN chat_conversation c ON c.id = m.conversation_id WHERE m.id = new.message_id
    ) WHERE id = new.id;
END

DROP TRIGGER IF EXISTS chat_toolcall_owner_changed

CREATE TRIGGER chat_toolcall_owner_changed AFTER UPDATE OF owner_id ON chat_toolcall WHEN new.owner_id IS NULL
BEGIN
    UPDATE chat_toolcall SET owner_id = (
        SELECT c.owner_id FROM chat_message m JOIN chat_conversation c ON c.id = m.conversation_id WHERE m.id = new.message_id
    ) WHERE id = new.id;
END

DROP TRIGGER IF EXISTS chat_attachment_owner_new

CREATE TRIGGER chat_attachment_owner_new AFTER INSERT ON chat_attachment WHEN new.owner_id IS NULL
BEGIN
    UPDATE chat_attachment SET owner_id = (
        SELECT c.owner_id FROM chat_message m JOIN chat_conversation c ON c.id = m.conversation_id WHERE m.id = new.message_id
    ) WHERE id = new.id;
END

DROP TRIGGER IF EXISTS chat_attachment_owner_changed

CREATE TRIGGER chat_attachment_owner_changed AFTER UPDATE OF owner_id ON chat_attachment WHEN new.owner_id IS NULL
BEGIN
    UPDATE chat_attachment SET owner_id = (
        SELECT c.owner_id FROM chat_message m JOIN chat_conversation c ON c.id = m.conversation_id WHERE m.id = new.message_id
    ) WHERE id = new.id;
END
