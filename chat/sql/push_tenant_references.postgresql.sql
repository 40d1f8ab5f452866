ALTER TABLE chat_pushdevice ADD CONSTRAINT chat_pushdevice_tenant UNIQUE (workspace_id, id)

ALTER TABLE chat_pushmessage ADD CONSTRAINT chat_pushmessage_device_id_tenant
FOREIGN KEY (workspace_id, device_id) REFERENCES chat_pushdevice (workspace_id, id) DEFERRABLE INITIALLY DEFERRED
