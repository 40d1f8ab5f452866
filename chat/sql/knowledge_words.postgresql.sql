-- Words of passages are kept beside them: ranking and scans read them instead of making them anew. A blank line ends a
-- statement.

ALTER TABLE chat_knowledgepassage ADD COLUMN words tsvector GENERATED ALWAYS AS (to_tsvector('simple', text)) STORED

DROP INDEX chat_knowledgepassage_words

CREATE INDEX chat_knowledgepassage_words ON chat_knowledgepassage USING gin (words)

ANALYZE chat_knowledgepassage
