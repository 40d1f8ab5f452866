ALTER TABLE chat_budcheck ADD CONSTRAINT chat_budcheck_tenant UNIQUE (workspace_id, id)

ALTER TABLE chat_checkrun ADD CONSTRAINT chat_checkrun_tenant UNIQUE (workspace_id, id)

ALTER TABLE chat_budcheck ADD CONSTRAINT chat_budcheck_bud_id_tenant
FOREIGN KEY (workspace_id, bud_id) REFERENCES chat_bud (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE chat_checkrun ADD CONSTRAINT chat_checkrun_bud_id_tenant
FOREIGN KEY (workspace_id, bud_id) REFERENCES chat_bud (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE chat_checkrun ADD CONSTRAINT chat_checkrun_draft_id_tenant
FOREIGN KEY (workspace_id, draft_id) REFERENCES chat_bud (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE chat_checkresult ADD CONSTRAINT chat_checkresult_run_id_tenant
FOREIGN KEY (workspace_id, run_id) REFERENCES chat_checkrun (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE chat_checkresult ADD CONSTRAINT chat_checkresult_bud_check_id_tenant
FOREIGN KEY (workspace_id, bud_check_id) REFERENCES chat_budcheck (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE chat_checkresult ADD CONSTRAINT chat_checkresult_conversation_id_tenant
FOREIGN KEY (workspace_id, conversation_id) REFERENCES chat_conversation (workspace_id, id) DEFERRABLE INITIALLY DEFERRED
