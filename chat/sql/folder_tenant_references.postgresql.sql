ALTER TABLE chat_folder ADD CONSTRAINT chat_folder_tenant UNIQUE (workspace_id, id)

ALTER TABLE chat_conversation ADD CONSTRAINT chat_conversation_folder_id_tenant
FOREIGN KEY (workspace_id, folder_id) REFERENCES chat_folder (workspace_id, id) DEFERRABLE INITIALLY DEFERRED
