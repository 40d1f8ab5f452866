ALTER TABLE chat_chatimport ADD CONSTRAINT chat_chatimport_tenant UNIQUE (workspace_id, id)

ALTER TABLE chat_chatimport ADD CONSTRAINT chat_chatimport_bud_id_tenant
FOREIGN KEY (workspace_id, bud_id) REFERENCES chat_bud (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE chat_conversation ADD CONSTRAINT chat_conversation_chat_import_id_tenant
FOREIGN KEY (workspace_id, chat_import_id) REFERENCES chat_chatimport (workspace_id, id) DEFERRABLE INITIALLY DEFERRED
