-- Words of messages, with whose they are and of which chat: so the newest of a person's, or of some chats, are found
-- without looking at any other. What still streams is not found yet. Run this again in each migration that changes the table
-- of messages: SQLite makes such a table anew, without its triggers and with other row numbers. A blank line ends a statement.

DROP TRIGGER IF EXISTS chat_message_words_new

DROP TRIGGER IF EXISTS chat_message_words_changed

DROP TRIGGER IF EXISTS chat_message_words_gone

DROP TABLE IF EXISTS chat_message_words

CREATE VIRTUAL TABLE chat_message_words USING fts5(text, owner, tokenize = 'unicode61 remove_diacritics 2', prefix = '1 2 3')

INSERT INTO chat_message_words (rowid, text, owner)
SELECT m.rowid, m.text, c.workspace_id || c.owner_id || ' ' || c.id FROM chat_message m JOIN chat_conversation c ON c.id = m.conversation_id
WHERE m.status <> 'streaming' AND m.text <> '' ORDER BY m.rowid

CREATE TRIGGER chat_message_words_new AFTER INSERT ON chat_message
WHEN new.status <> 'streaming' AND new.text <> ''
BEGIN
    INSERT INTO chat_message_words (rowid, text, owner)
    VALUES (new.rowid, new.text, (SELECT workspace_id || owner_id || ' ' || id FROM chat_conversation WHERE id = new.conversation_id));
END

CREATE TRIGGER chat_message_words_changed AFTER UPDATE OF text, status ON chat_message
WHEN new.status <> 'streaming' AND (old.status = 'streaming' OR old.text <> new.text)
BEGIN
    DELETE FROM chat_message_words WHERE rowid = old.rowid;
    INSERT INTO chat_message_words (rowid, text, owner)
    VALUES (new.rowid, new.text, (SELECT workspace_id || owner_id || ' ' || id FROM chat_conversation WHERE id = new.conversation_id));
END

CREATE TRIGGER chat_message_words_gone AFTER DELETE ON chat_message
BEGIN
    DELETE FROM chat_message_words WHERE rowid = old.rowid;
END
