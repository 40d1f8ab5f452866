-- A row of one workspace cannot point at a row of another. On SQLite, which is for one process, the tenant door alone
-- holds that. A blank line ends a statement.

ALTER TABLE chat_artifact ADD CONSTRAINT chat_artifact_tenant UNIQUE (workspace_id, id)

ALTER TABLE chat_bud ADD CONSTRAINT chat_bud_tenant UNIQUE (workspace_id, id)

ALTER TABLE chat_conversation ADD CONSTRAINT chat_conversation_tenant UNIQUE (workspace_id, id)

ALTER TABLE chat_message ADD CONSTRAINT chat_message_tenant UNIQUE (workspace_id, id)

ALTER TABLE chat_modelprovider ADD CONSTRAINT chat_modelprovider_tenant UNIQUE (workspace_id, id)

ALTER TABLE chat_toolcall ADD CONSTRAINT chat_toolcall_tenant UNIQUE (workspace_id, id)

ALTER TABLE chat_turn ADD CONSTRAINT chat_turn_tenant UNIQUE (workspace_id, id)

ALTER TABLE chat_webhookendpoint ADD CONSTRAINT chat_webhookendpoint_tenant UNIQUE (workspace_id, id)

ALTER TABLE chat_artifact ADD CONSTRAINT chat_artifact_conversation_id_tenant
FOREIGN KEY (workspace_id, conversation_id) REFERENCES chat_conversation (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE chat_artifactversion ADD CONSTRAINT chat_artifactversion_artifact_id_tenant
FOREIGN KEY (workspace_id, artifact_id) REFERENCES chat_artifact (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE chat_artifactversion ADD CONSTRAINT chat_artifactversion_message_id_tenant
FOREIGN KEY (workspace_id, message_id) REFERENCES chat_message (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE chat_artifactversion ADD CONSTRAINT chat_artifactversion_tool_call_id_tenant
FOREIGN KEY (workspace_id, tool_call_id) REFERENCES chat_toolcall (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE chat_attachment ADD CONSTRAINT chat_attachment_message_id_tenant
FOREIGN KEY (workspace_id, message_id) REFERENCES chat_message (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE chat_bud ADD CONSTRAINT chat_bud_provider_id_tenant
FOREIGN KEY (workspace_id, provider_id) REFERENCES chat_modelprovider (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE chat_conversation ADD CONSTRAINT chat_conversation_bud_id_tenant
FOREIGN KEY (workspace_id, bud_id) REFERENCES chat_bud (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE chat_conversation ADD CONSTRAINT chat_conversation_leaf_id_tenant
FOREIGN KEY (workspace_id, leaf_id) REFERENCES chat_message (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE chat_message ADD CONSTRAINT chat_message_conversation_id_tenant
FOREIGN KEY (workspace_id, conversation_id) REFERENCES chat_conversation (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE chat_message ADD CONSTRAINT chat_message_parent_id_tenant
FOREIGN KEY (workspace_id, parent_id) REFERENCES chat_message (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE chat_message ADD CONSTRAINT chat_message_turn_id_tenant
FOREIGN KEY (workspace_id, turn_id) REFERENCES chat_turn (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE chat_providermodel ADD CONSTRAINT chat_providermodel_provider_id_tenant
FOREIGN KEY (workspace_id, provider_id) REFERENCES chat_modelprovider (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE chat_queuedmessage ADD CONSTRAINT chat_queuedmessage_conversation_id_tenant
FOREIGN KEY (workspace_id, conversation_id) REFERENCES chat_conversation (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE chat_toolcall ADD CONSTRAINT chat_toolcall_message_id_tenant
FOREIGN KEY (workspace_id, message_id) REFERENCES chat_message (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE chat_toolcall ADD CONSTRAINT chat_toolcall_repeats_id_tenant
FOREIGN KEY (workspace_id, repeats_id) REFERENCES chat_toolcall (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE chat_toolcall ADD CONSTRAINT chat_toolcall_turn_id_tenant
FOREIGN KEY (workspace_id, turn_id) REFERENCES chat_turn (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE chat_turn ADD CONSTRAINT chat_turn_conversation_id_tenant
FOREIGN KEY (workspace_id, conversation_id) REFERENCES chat_conversation (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE chat_turn ADD CONSTRAINT chat_turn_user_message_id_tenant
FOREIGN KEY (workspace_id, user_message_id) REFERENCES chat_message (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE chat_webhookdelivery ADD CONSTRAINT chat_webhookdelivery_endpoint_id_tenant
FOREIGN KEY (workspace_id, endpoint_id) REFERENCES chat_webhookendpoint (workspace_id, id) DEFERRABLE INITIALLY DEFERRED
