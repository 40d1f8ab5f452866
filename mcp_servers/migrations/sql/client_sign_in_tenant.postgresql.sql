-- As in tenant_references: a row of one workspace cannot point at a row of another.

ALTER TABLE mcp_servers_clientsignin ADD CONSTRAINT mcp_servers_clientsignin_tenant UNIQUE (workspace_id, id)

ALTER TABLE mcp_servers_clienttoken ADD CONSTRAINT mcp_servers_clienttoken_sign_in_id_tenant
FOREIGN KEY (workspace_id, sign_in_id) REFERENCES mcp_servers_clientsignin (workspace_id, id) DEFERRABLE INITIALLY DEFERRED
