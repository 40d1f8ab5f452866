ALTER TABLE chat_draft ADD CONSTRAINT chat_draft_conversation_id_tenant
FOREIGN KEY (workspace_id, conversation_id) REFERENCES chat_conversation (workspace_id, id) DEFERRABLE INITIALLY DEFERRED
