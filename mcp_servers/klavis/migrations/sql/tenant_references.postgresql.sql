-- An instance of one workspace cannot stand behind a server of another. A blank line ends a statement.

ALTER TABLE mcp_servers_klavisinstance ADD CONSTRAINT mcp_servers_klavisinstance_server_id_tenant
FOREIGN KEY (workspace_id, server_id) REFERENCES mcp_servers_mcpserver (workspace_id, id) DEFERRABLE INITIALLY DEFERRED
