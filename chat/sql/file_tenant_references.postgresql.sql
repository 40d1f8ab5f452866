-- A row of one workspace cannot point at a row of another. On SQLite, which is for one process, the tenant door alone
-- holds that. A blank line ends a statement.

ALTER TABLE chat_artifactversion ADD CONSTRAINT chat_artifactversion_tenant UNIQUE (workspace_id, id)

ALTER TABLE chat_attachment ADD CONSTRAINT chat_attachment_version_id_tenant
FOREIGN KEY (workspace_id, version_id) REFERENCES chat_artifactversion (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE chat_filereading ADD CONSTRAINT chat_filereading_version_id_tenant
FOREIGN KEY (workspace_id, version_id) REFERENCES chat_artifactversion (workspace_id, id) DEFERRABLE INITIALLY DEFERRED
