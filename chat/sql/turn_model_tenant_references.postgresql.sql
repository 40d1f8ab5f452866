ALTER TABLE chat_turn ADD CONSTRAINT chat_turn_chosen_model_id_tenant
FOREIGN KEY (workspace_id, chosen_model_id) REFERENCES chat_providermodel (workspace_id, id) DEFERRABLE INITIALLY DEFERRED
