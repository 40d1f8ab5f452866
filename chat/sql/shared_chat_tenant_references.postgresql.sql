ALTER TABLE chat_sharedchat ADD CONSTRAINT chat_sharedchat_tenant UNIQUE (workspace_id, id)

ALTER TABLE chat_sharedchat ADD CONSTRAINT chat_sharedchat_conversation_id_tenant
FOREIGN KEY (workspace_id, conversation_id) REFERENCES chat_conversation (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE chat_sharedchattext ADD CONSTRAINT chat_sharedchattext_shared_id_tenant
FOREIGN KEY (workspace_id, shared_id) REFERENCES chat_sharedchat (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE chat_sharedchatreader ADD CONSTRAINT chat_sharedchatreader_shared_id_tenant
FOREIGN KEY (workspace_id, shared_id) REFERENCES chat_sharedchat (workspace_id, id) DEFERRABLE INITIALLY DEFERRED
