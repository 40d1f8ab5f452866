"""Forms of the servers pages and of the admin. They read input; the services check it."""

from mcp_servers.pages.forms.add import AddServerForm, PersonalServerForm, ProgramForm
from mcp_servers.pages.forms.admin import ServerAdminForm
from mcp_servers.pages.forms.common import WhereForm, add_domain_error, read_where
from mcp_servers.pages.forms.settings import SettingsForm

__all__ = [
    "AddServerForm",
    "PersonalServerForm",
    "ProgramForm",
    "ServerAdminForm",
    "SettingsForm",
    "WhereForm",
    "add_domain_error",
    "read_where",
]
