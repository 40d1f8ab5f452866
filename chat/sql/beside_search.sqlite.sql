-- Words of what stands beside messages: calls of tools that have ended, and attached files and resources, with whose they
-- are and of which chat. `chat_beside` says which row has which words; it is narrow, so a search that a filter narrows reads
-- little. Of each text a beginning is kept (`chat/services/beside_index.py` has the same numbers). A row that names no version
-- of its file any more is no longer found. Run this again in each migration that makes the table of calls or of attachments
-- anew: SQLite forgets its triggers then. Rows keep their words: they know them by their ids. A blank line ends a statement.

CREATE TABLE IF NOT EXISTS chat_beside (
    number integer PRIMARY KEY, text_id char(32) NOT NULL UNIQUE, message_id char(32) NOT NULL, conversation_id char(32) NOT NULL
)

CREATE VIRTUAL TABLE IF NOT EXISTS chat_beside_words USING fts5(said, owner, tokenize = 'unicode61 remove_diacritics 2', prefix = '1 2 3')

DROP TRIGGER IF EXISTS chat_beside_call_new

CREATE TRIGGER chat_beside_call_new AFTER INSERT ON chat_toolcall
WHEN new.status NOT IN ('queued', 'waiting_for_approval', 'waiting_for_input', 'running')
BEGIN
    INSERT INTO chat_beside (text_id, message_id, conversation_id)
    SELECT new.id, id, conversation_id FROM chat_message WHERE id = new.message_id
    AND NOT EXISTS (SELECT 1 FROM chat_beside WHERE text_id = new.id);
    INSERT INTO chat_beside_words (rowid, said, owner)
    SELECT b.number, new.server_name || ' ' || new.tool_name || ' ' || new.tool_title || ' ' || new.function_name
        || coalesce(' ' || json_extract(new.artifact, '$.name'), '')
        || coalesce(' ' || (SELECT substr(group_concat(atom, ' '), 1, 10000) FROM json_tree(new.arguments)
                            WHERE type IN ('text', 'integer', 'real')), '')
        || ' ' || substr(new.model_text, 1, 20000),
        c.workspace_id || c.owner_id || ' ' || c.id
    FROM chat_beside b JOIN chat_conversation c ON c.id = b.conversation_id WHERE b.text_id = new.id;
END

DROP TRIGGER IF EXISTS chat_beside_call_changed

CREATE TRIGGER chat_beside_call_changed AFTER UPDATE OF status, arguments, model_text ON chat_toolcall
WHEN new.status NOT IN ('queued', 'waiting_for_approval', 'waiting_for_input', 'running')
BEGIN
    DELETE FROM chat_beside_words WHERE rowid = (SELECT number FROM chat_beside WHERE text_id = new.id);
    INSERT INTO chat_beside (text_id, message_id, conversation_id)
    SELECT new.id, id, conversation_id FROM chat_message WHERE id = new.message_id
    AND NOT EXISTS (SELECT 1 FROM chat_beside WHERE text_id = new.id);
    INSERT INTO chat_beside_words (rowid, said, owner)
    SELECT b.number, new.server_name || ' ' || new.tool_name || ' ' || new.tool_title || ' ' || new.function_name
        || coalesce(' ' || json_extract(new.artifact, '$.name'), '')
        || coalesce(' ' || (SELECT substr(group_concat(atom, ' '), 1, 10000) FROM json_tree(new.arguments)
                            WHERE type IN ('text', 'integer', 'real')), '')
        || ' ' || substr(new.model_text, 1, 20000),
        c.workspace_id || c.owner_id || ' ' || c.id
    FROM chat_beside b JOIN chat_conversation c ON c.id = b.conversation_id WHERE b.text_id = new.id;
END

DROP TRIGGER IF EXISTS chat_beside_call_gone

CREATE TRIGGER chat_beside_call_gone AFTER DELETE ON chat_toolcall
BEGIN
    DELETE FROM chat_beside_words WHERE rowid = (SELECT number FROM chat_beside WHERE text_id = old.id);
    DELETE FROM chat_beside WHERE text_id = old.id;
END

DROP TRIGGER IF EXISTS chat_beside_file_new

CREATE TRIGGER chat_beside_file_new AFTER INSERT ON chat_attachment
WHEN new.status <> 'queued'
BEGIN
    INSERT INTO chat_beside (text_id, message_id, conversation_id)
    SELECT new.id, id, conversation_id FROM chat_message WHERE id = new.message_id AND (new.server_id IS NOT NULL OR new.version_id IS NOT NULL)
    AND NOT EXISTS (SELECT 1 FROM chat_beside WHERE text_id = new.id);
    INSERT INTO chat_beside_words (rowid, said, owner)
    SELECT b.number, new.title || ' ' || new.server_name || ' ' || new.uri || CASE
        WHEN new.server_id IS NOT NULL OR new.characters > 0 THEN ' ' || substr(new.model_text, 1, 60000) ELSE '' END,
        c.workspace_id || c.owner_id || ' ' || c.id
    FROM chat_beside b JOIN chat_conversation c ON c.id = b.conversation_id WHERE b.text_id = new.id;
END

DROP TRIGGER IF EXISTS chat_beside_file_changed

CREATE TRIGGER chat_beside_file_changed AFTER UPDATE OF status, model_text, version_id ON chat_attachment
WHEN new.status <> 'queued'
BEGIN
    DELETE FROM chat_beside_words WHERE rowid = (SELECT number FROM chat_beside WHERE text_id = new.id);
    DELETE FROM chat_beside WHERE text_id = new.id AND NOT (new.server_id IS NOT NULL OR new.version_id IS NOT NULL);
    INSERT INTO chat_beside (text_id, message_id, conversation_id)
    SELECT new.id, id, conversation_id FROM chat_message WHERE id = new.message_id AND (new.server_id IS NOT NULL OR new.version_id IS NOT NULL)
    AND NOT EXISTS (SELECT 1 FROM chat_beside WHERE text_id = new.id);
    INSERT INTO chat_beside_words (rowid, said, owner)
    SELECT b.number, new.title || ' ' || new.server_name || ' ' || new.uri || CASE
        WHEN new.server_id IS NOT NULL OR new.characters > 0 THEN ' ' || substr(new.model_text, 1, 60000) ELSE '' END,
        c.workspace_id || c.owner_id || ' ' || c.id
    FROM chat_beside b JOIN chat_conversation c ON c.id = b.conversation_id WHERE b.text_id = new.id;
END

DROP TRIGGER IF EXISTS chat_beside_file_gone

CREATE TRIGGER chat_beside_file_gone AFTER DELETE ON chat_attachment
BEGIN
    DELETE FROM chat_beside_words WHERE rowid = (SELECT number FROM chat_beside WHERE text_id = old.id);
    DELETE FROM chat_beside WHERE text_id = old.id;
END
