ALTER TABLE chat_pin ADD CONSTRAINT chat_pin_bud_id_tenant
FOREIGN KEY (workspace_id, bud_id) REFERENCES chat_bud (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE chat_pin ADD CONSTRAINT chat_pin_provider_id_tenant
FOREIGN KEY (workspace_id, provider_id) REFERENCES chat_modelprovider (workspace_id, id) DEFERRABLE INITIALLY DEFERRED
