-- A row of one workspace cannot point at a row of another. On SQLite, which is for one process, the tenant door alone
-- holds that. A blank line ends a statement.

ALTER TABLE audit_alertrule ADD CONSTRAINT audit_alertrule_tenant UNIQUE (workspace_id, id)

ALTER TABLE audit_alert ADD CONSTRAINT audit_alert_rule_id_tenant
FOREIGN KEY (workspace_id, rule_id) REFERENCES audit_alertrule (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE audit_alertdelivery ADD CONSTRAINT audit_alertdelivery_rule_id_tenant
FOREIGN KEY (workspace_id, rule_id) REFERENCES audit_alertrule (workspace_id, id) DEFERRABLE INITIALLY DEFERRED
