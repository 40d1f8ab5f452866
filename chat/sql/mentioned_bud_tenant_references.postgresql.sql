ALTER TABLE chat_turn ADD CONSTRAINT chat_turn_mentioned_bud_id_tenant
FOREIGN KEY (workspace_id, mentioned_bud_id) REFERENCES chat_bud (workspace_id, id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE chat_queuedmessage ADD CONSTRAINT chat_queuedmessage_mentioned_bud_id_tenant
FOREIGN KEY (workspace_id, mentioned_bud_id) REFERENCES chat_bud (workspace_id, id) DEFERRABLE INITIALLY DEFERRED
