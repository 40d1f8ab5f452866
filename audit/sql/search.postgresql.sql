-- Words in previews. Without statistics of its words the planner would not choose the index.

CREATE INDEX audit_by_words ON audit_auditentry
USING gin (to_tsvector('simple', arguments_preview || ' ' || result_preview))

ANALYZE audit_auditentry
