ALTER TABLE chat_datacopy ADD CONSTRAINT chat_datacopy_tenant UNIQUE (workspace_id, id)

ALTER TABLE chat_datacopypart ADD CONSTRAINT chat_datacopypart_copy_id_tenant
FOREIGN KEY (workspace_id, copy_id) REFERENCES chat_datacopy (workspace_id, id) DEFERRABLE INITIALLY DEFERRED
