ALTER TABLE chat_modelprovider ADD CONSTRAINT chat_modelprovider_fallback_id_tenant
FOREIGN KEY (workspace_id, fallback_id) REFERENCES chat_modelprovider (workspace_id, id) DEFERRABLE INITIALLY DEFERRED
