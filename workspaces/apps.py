"""Tenants, people, roles and keys: all other apps build on them."""

from django.apps import AppConfig


class WorkspacesConfig(AppConfig):
    name = "workspaces"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from workspaces import checks  # noqa: F401 - registers the system checks
        from workspaces.audited_tables import audit_table
        from workspaces.database.postgresql.policies import OF_PERSON, also_allow
        from workspaces.labels import COLUMNS, EVERYWHERE, TABLES
        from workspaces.models import ApiToken, Membership, Workspace
        from workspaces.people import (
            email_addresses,  # noqa: F401 - follows the rows of addresses
            two_step,  # noqa: F401 - follows the rows of the second step
        )
        from workspaces.people.memberships import end_rows_of, listen_to_leaving
        from workspaces.words.columns import name_tables
        from workspaces.words.number_faults import say_number_faults_plainly

        say_number_faults_plainly()
        name_tables(self, tables=TABLES, columns={**EVERYWHERE, **COLUMNS})
        audit_table(
            Workspace,
            (
                *("name", "slug", "is_active", "approves_new_tools"),
                *("allows_personal_servers", "remembers_permissions", "reads_outside_unasked"),
                "allows_mcp_clients",
                "allows_public_links",
                "requires_two_steps",
            ),
        )
        audit_table(Membership, ("role", "is_auditor", "suspended_at"))
        audit_table(ApiToken, ("user", "scopes", "expires_at"))
        listen_to_leaving(parted=end_rows_of)
        # Which workspaces a person may enter is asked before they are in one.
        also_allow(Membership, "SELECT", OF_PERSON)
