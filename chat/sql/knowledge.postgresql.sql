-- A row of one workspace cannot point at a row of another. A blank line ends a statement.

ALTER TABLE chat_knowledgefile ADD CONSTRAINT chat_knowledgefile_tenant UNIQUE (workspace_id, id)

ALTER TABLE chat_knowledgefile ADD CONSTRAINT chat_knowledgefile_bud_id_tenant
FOREIGN KEY (workspace_id, bud_id) REFERENCES chat_bud (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE chat_knowledgepassage ADD CONSTRAINT chat_knowledgepassage_file_id_tenant
FOREIGN KEY (workspace_id, file_id) REFERENCES chat_knowledgefile (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

CREATE INDEX chat_knowledgepassage_words ON chat_knowledgepassage USING gin (to_tsvector('simple', text))
