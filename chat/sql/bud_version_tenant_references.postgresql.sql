ALTER TABLE chat_budversion ADD CONSTRAINT chat_budversion_bud_id_tenant
FOREIGN KEY (workspace_id, bud_id) REFERENCES chat_bud (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE chat_bud ADD CONSTRAINT chat_bud_draft_of_id_tenant
FOREIGN KEY (workspace_id, draft_of_id) REFERENCES chat_bud (workspace_id, id) DEFERRABLE INITIALLY DEFERRED
