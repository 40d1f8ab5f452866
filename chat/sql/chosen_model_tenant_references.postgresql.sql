ALTER TABLE chat_providermodel ADD CONSTRAINT chat_providermodel_tenant UNIQUE (workspace_id, id)

ALTER TABLE chat_conversation ADD CONSTRAINT chat_conversation_chosen_model_id_tenant
FOREIGN KEY (workspace_id, chosen_model_id) REFERENCES chat_providermodel (workspace_id, id) DEFERRABLE INITIALLY DEFERRED
