-- A row of one workspace cannot point at a row of another. A blank line ends a statement.

ALTER TABLE chat_knowledgepreparation ADD CONSTRAINT chat_knowledgepreparation_tenant UNIQUE (workspace_id, id)

ALTER TABLE chat_knowledgepreparation ADD CONSTRAINT chat_knowledgepreparation_file_id_tenant
FOREIGN KEY (workspace_id, file_id) REFERENCES chat_knowledgefile (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE chat_knowledgepreparation ADD CONSTRAINT chat_knowledgepreparation_provider_id_tenant
FOREIGN KEY (workspace_id, provider_id) REFERENCES chat_modelprovider (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE chat_passagevector ADD CONSTRAINT chat_passagevector_preparation_id_tenant
FOREIGN KEY (workspace_id, preparation_id) REFERENCES chat_knowledgepreparation (workspace_id, id) DEFERRABLE INITIALLY DEFERRED
