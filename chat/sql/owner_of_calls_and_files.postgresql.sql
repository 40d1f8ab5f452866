-- Whose a call of a tool and an attached file are, beside them: so a search reads a person's own and nobody else's,
-- however often others call the tool. A conversation never changes its owner. A blank line ends a statement.

CREATE OR REPLACE FUNCTION chat_owner_by_message() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    SELECT c.owner_id INTO NEW.owner_id
    FROM chat_message m JOIN chat_conversation c ON c.id = m.conversation_id WHERE m.id = NEW.message_id;
    RETURN NEW;
END $$

CREATE OR REPLACE TRIGGER chat_toolcall_owner BEFORE INSERT OR UPDATE OF owner_id ON chat_toolcall
FOR EACH ROW WHEN (NEW.owner_id IS NULL) EXECUTE FUNCTION chat_owner_by_message()

CREATE OR REPLACE TRIGGER chat_attachment_owner BEFORE INSERT OR UPDATE OF owner_id ON chat_attachment
FOR EACH ROW WHEN (NEW.owner_id IS NULL) EXECUTE FUNCTION chat_owner_by_message()
