ALTER TABLE chat_modelrequest ADD CONSTRAINT chat_modelrequest_provider_id_tenant
FOREIGN KEY (workspace_id, provider_id) REFERENCES chat_modelprovider (workspace_id, id) DEFERRABLE INITIALLY DEFERRED
