-- As in tenant_references: a row of one workspace cannot point at a row of another.

ALTER TABLE mcp_servers_servericon ADD CONSTRAINT mcp_servers_servericon_server_id_tenant
FOREIGN KEY (workspace_id, server_id) REFERENCES mcp_servers_mcpserver (workspace_id, id) DEFERRABLE INITIALLY DEFERRED
