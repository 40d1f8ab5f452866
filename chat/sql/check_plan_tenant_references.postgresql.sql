ALTER TABLE chat_checkplan ADD CONSTRAINT chat_checkplan_bud_id_tenant
FOREIGN KEY (workspace_id, bud_id) REFERENCES chat_bud (workspace_id, id) DEFERRABLE INITIALLY DEFERRED
