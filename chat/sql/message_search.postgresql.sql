-- Words of messages, with whose they are. What still streams is not found yet, and costs nothing while it grows. A table
-- of its own: the newest messages of a person are looked through without making their words anew, and rare words are
-- found by an index that knows the person too. The lexeme of a person begins with a blank, as no word of a text does.
-- A message is cut where PostgreSQL could not keep its words. A blank line ends a statement.

DROP INDEX IF EXISTS chat_message_words

CREATE TABLE IF NOT EXISTS chat_message_lexemes (
    message_id uuid PRIMARY KEY, workspace_id uuid NOT NULL, owner_id uuid NOT NULL, words tsvector NOT NULL
)

CREATE OR REPLACE FUNCTION chat_message_lexemes_keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO chat_message_lexemes (message_id, workspace_id, owner_id, words)
    SELECT NEW.id, c.workspace_id, c.owner_id,
        to_tsvector('simple', left(NEW.text, 250000)) || array_to_tsvector(ARRAY[' ' || c.workspace_id || c.owner_id])
    FROM chat_conversation c WHERE c.id = NEW.conversation_id
    ON CONFLICT (message_id) DO UPDATE SET words = excluded.words;
    RETURN NULL;
END $$

CREATE OR REPLACE FUNCTION chat_message_lexemes_drop() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM chat_message_lexemes WHERE message_id = OLD.id;
    RETURN NULL;
END $$

CREATE OR REPLACE TRIGGER chat_message_lexemes_new AFTER INSERT ON chat_message
FOR EACH ROW WHEN (NEW.status <> 'streaming' AND NEW.text <> '') EXECUTE FUNCTION chat_message_lexemes_keep()

CREATE OR REPLACE TRIGGER chat_message_lexemes_changed AFTER UPDATE OF text, status ON chat_message
FOR EACH ROW WHEN (NEW.status <> 'streaming' AND (OLD.status = 'streaming' OR OLD.text <> NEW.text))
EXECUTE FUNCTION chat_message_lexemes_keep()

CREATE OR REPLACE TRIGGER chat_message_lexemes_gone AFTER DELETE ON chat_message
FOR EACH ROW EXECUTE FUNCTION chat_message_lexemes_drop()

INSERT INTO chat_message_lexemes (message_id, workspace_id, owner_id, words)
SELECT m.id, c.workspace_id, c.owner_id,
    to_tsvector('simple', left(m.text, 250000)) || array_to_tsvector(ARRAY[' ' || c.workspace_id || c.owner_id])
FROM chat_message m JOIN chat_conversation c ON c.id = m.conversation_id
WHERE m.status <> 'streaming' AND m.text <> '' ORDER BY m.id
ON CONFLICT (message_id) DO NOTHING

CREATE INDEX IF NOT EXISTS chat_message_lexemes_newest ON chat_message_lexemes (workspace_id, owner_id, message_id)

CREATE INDEX IF NOT EXISTS chat_message_lexemes_found ON chat_message_lexemes USING gin (words)

ANALYZE chat_message_lexemes
