-- A row of one workspace cannot point at a row of another. On SQLite, which is for one process, the tenant door alone
-- holds that. A blank line ends a statement.

ALTER TABLE mcp_servers_mcpserver ADD CONSTRAINT mcp_servers_mcpserver_tenant UNIQUE (workspace_id, id)

ALTER TABLE mcp_servers_mcptool ADD CONSTRAINT mcp_servers_mcptool_tenant UNIQUE (workspace_id, id)

ALTER TABLE mcp_servers_oauthclient ADD CONSTRAINT mcp_servers_oauthclient_tenant UNIQUE (workspace_id, id)

ALTER TABLE mcp_servers_actionrule ADD CONSTRAINT mcp_servers_actionrule_server_id_tenant
FOREIGN KEY (workspace_id, server_id) REFERENCES mcp_servers_mcpserver (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE mcp_servers_healthcheck ADD CONSTRAINT mcp_servers_healthcheck_server_tenant
FOREIGN KEY (workspace_id, server_id) REFERENCES mcp_servers_mcpserver (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE mcp_servers_mcpprompt ADD CONSTRAINT mcp_servers_mcpprompt_server_id_tenant
FOREIGN KEY (workspace_id, server_id) REFERENCES mcp_servers_mcpserver (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE mcp_servers_mcpresource ADD CONSTRAINT mcp_servers_mcpresource_server_id_tenant
FOREIGN KEY (workspace_id, server_id) REFERENCES mcp_servers_mcpserver (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE mcp_servers_mcptool ADD CONSTRAINT mcp_servers_mcptool_server_tenant
FOREIGN KEY (workspace_id, server_id) REFERENCES mcp_servers_mcpserver (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE mcp_servers_oauthattempt ADD CONSTRAINT mcp_servers_oauthattempt_client_id_tenant
FOREIGN KEY (workspace_id, client_id) REFERENCES mcp_servers_oauthclient (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE mcp_servers_oauthattempt ADD CONSTRAINT mcp_servers_oauthattempt_server_id_tenant
FOREIGN KEY (workspace_id, server_id) REFERENCES mcp_servers_mcpserver (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE mcp_servers_oauthclient ADD CONSTRAINT mcp_servers_oauthclient_server_id_tenant
FOREIGN KEY (workspace_id, server_id) REFERENCES mcp_servers_mcpserver (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE mcp_servers_oauthgrant ADD CONSTRAINT mcp_servers_oauthgrant_client_id_tenant
FOREIGN KEY (workspace_id, client_id) REFERENCES mcp_servers_oauthclient (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE mcp_servers_oauthgrant ADD CONSTRAINT mcp_servers_oauthgrant_server_id_tenant
FOREIGN KEY (workspace_id, server_id) REFERENCES mcp_servers_mcpserver (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE mcp_servers_toolpermission ADD CONSTRAINT mcp_servers_toolpermission_tool_id_tenant
FOREIGN KEY (workspace_id, tool_id) REFERENCES mcp_servers_mcptool (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE mcp_servers_toolsighting ADD CONSTRAINT mcp_servers_toolsighting_server_id_tenant
FOREIGN KEY (workspace_id, server_id) REFERENCES mcp_servers_mcpserver (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE mcp_servers_toolsighting ADD CONSTRAINT mcp_servers_toolsighting_tool_id_tenant
FOREIGN KEY (workspace_id, tool_id) REFERENCES mcp_servers_mcptool (workspace_id, id) DEFERRABLE INITIALLY DEFERRED

ALTER TABLE mcp_servers_tracemessage ADD CONSTRAINT mcp_servers_tracemessage_server_id_tenant
FOREIGN KEY (workspace_id, server_id) REFERENCES mcp_servers_mcpserver (workspace_id, id) DEFERRABLE INITIALLY DEFERRED
