-- Words of what stands beside messages: calls of tools that have ended, and attached files and resources, with whose they
-- are. A table of its own, as that of messages' words has it, so that what tools gave never hides what people said. Of each
-- text a beginning is kept (`chat/services/beside_index.py` has the same numbers). Signs between words part them: PostgreSQL
-- takes a path or an address for one word. A row that names no version of its file any more is no longer found. A blank line
-- ends a statement.

CREATE TABLE IF NOT EXISTS chat_beside_lexemes (
    text_id uuid PRIMARY KEY, message_id uuid NOT NULL, conversation_id uuid NOT NULL,
    workspace_id uuid NOT NULL, owner_id uuid NOT NULL, words tsvector NOT NULL
)

CREATE OR REPLACE FUNCTION chat_beside_keep(of_text uuid, of_message uuid, said text) RETURNS void LANGUAGE sql AS $$
    INSERT INTO chat_beside_lexemes (text_id, message_id, conversation_id, workspace_id, owner_id, words)
    SELECT $1, m.id, c.id, c.workspace_id, c.owner_id,
        to_tsvector('simple', translate($3, './\:@-_=&?#+~', repeat(' ', 13)))
        || array_to_tsvector(ARRAY[' ' || c.workspace_id || c.owner_id])
    FROM chat_message m JOIN chat_conversation c ON c.id = m.conversation_id WHERE m.id = $2
    ON CONFLICT (text_id) DO UPDATE SET words = excluded.words
$$

CREATE OR REPLACE FUNCTION chat_beside_call() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM chat_beside_keep(NEW.id, NEW.message_id, concat_ws(' ',
        NEW.server_name, NEW.tool_name, NEW.tool_title, NEW.function_name, NEW.artifact ->> 'name',
        left((SELECT string_agg(one #>> '{}', ' ') FROM jsonb_path_query(NEW.arguments, 'strict $.**') one
              WHERE jsonb_typeof(one) IN ('string', 'number')), 10000),
        left(NEW.model_text, 20000)));
    RETURN NULL;
END $$

CREATE OR REPLACE FUNCTION chat_beside_file() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.server_id IS NULL AND NEW.version_id IS NULL THEN
        DELETE FROM chat_beside_lexemes WHERE text_id = NEW.id;
    ELSE
        PERFORM chat_beside_keep(NEW.id, NEW.message_id, concat_ws(' ', NEW.title, NEW.server_name, NEW.uri,
            CASE WHEN NEW.server_id IS NOT NULL OR NEW.characters > 0 THEN left(NEW.model_text, 60000) END));
    END IF;
    RETURN NULL;
END $$

CREATE OR REPLACE FUNCTION chat_beside_drop() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM chat_beside_lexemes WHERE text_id = OLD.id;
    RETURN NULL;
END $$

CREATE OR REPLACE TRIGGER chat_beside_call_new AFTER INSERT ON chat_toolcall
FOR EACH ROW WHEN (NEW.status NOT IN ('queued', 'waiting_for_approval', 'waiting_for_input', 'running'))
EXECUTE FUNCTION chat_beside_call()

CREATE OR REPLACE TRIGGER chat_beside_call_changed AFTER UPDATE OF status, arguments, model_text ON chat_toolcall
FOR EACH ROW WHEN (NEW.status NOT IN ('queued', 'waiting_for_approval', 'waiting_for_input', 'running'))
EXECUTE FUNCTION chat_beside_call()

CREATE OR REPLACE TRIGGER chat_beside_call_gone AFTER DELETE ON chat_toolcall
FOR EACH ROW EXECUTE FUNCTION chat_beside_drop()

CREATE OR REPLACE TRIGGER chat_beside_file_new AFTER INSERT ON chat_attachment
FOR EACH ROW WHEN (NEW.status <> 'queued') EXECUTE FUNCTION chat_beside_file()

CREATE OR REPLACE TRIGGER chat_beside_file_changed AFTER UPDATE OF status, model_text, version_id ON chat_attachment
FOR EACH ROW WHEN (NEW.status <> 'queued') EXECUTE FUNCTION chat_beside_file()

CREATE OR REPLACE TRIGGER chat_beside_file_gone AFTER DELETE ON chat_attachment
FOR EACH ROW EXECUTE FUNCTION chat_beside_drop()

CREATE INDEX IF NOT EXISTS chat_beside_lexemes_newest ON chat_beside_lexemes (workspace_id, owner_id, message_id)

CREATE INDEX IF NOT EXISTS chat_beside_lexemes_of_chat ON chat_beside_lexemes (conversation_id, message_id) INCLUDE (text_id)

CREATE INDEX IF NOT EXISTS chat_beside_lexemes_of_message ON chat_beside_lexemes (message_id)

CREATE INDEX IF NOT EXISTS chat_beside_lexemes_found ON chat_beside_lexemes USING gin (words)
