"""Operations of migrations that spare Django most of its work: it makes the classes of all related models anew after each.

Nearly every model refers to a workspace, so that is all of them, and most of what a first start computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.models import Model


class TablesAtOnce(Operation):
    """New tables of an app as all these operations together leave them. No table is made first and changed afterwards.

    No row is there to be moved yet. So of all operations only `OnDatabase` runs, once the tables are there.
    """

    def __init__(self, operations: Sequence[Operation]) -> None:
        self.operations = list(operations)

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Change the models' description only; their classes are made when the database's part asks for them."""
        state.__dict__.pop("apps", None)
        for operation in self.operations:
            operation.state_forwards(app_label, state)

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        """Make the tables, in the order of their models."""
        for model in _new_models(app_label, from_state, to_state):
            schema_editor.create_model(model)
        self.run_functions(schema_editor)

    def run_functions(self, schema_editor: BaseDatabaseSchemaEditor) -> None:
        """Do what is to be done to the database besides making tables."""
        for operation in self.operations:
            if isinstance(operation, OnDatabase | TablesAtOnce):
                operation.run_functions(schema_editor)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        """Drop them, the last one first."""
        for model in reversed(_new_models(app_label, to_state, from_state)):
            schema_editor.delete_model(model)

    def describe(self) -> str:
        """Say it shortly: a squashed migration stands for hundreds of steps."""
        return "Make tables at once"


class TablesUnlessThere(TablesAtOnce):
    """New tables that an earlier version may have made by other migrations: there they stay as they are."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        """Make them, unless the first one is there."""
        first, *_ = _new_models(app_label, from_state, to_state)
        tables = schema_editor.connection.introspection.table_names()
        if first._meta.db_table not in tables:
            super().database_forwards(app_label, schema_editor, from_state, to_state)


def operations_of(app_label: str, names: Sequence[str]) -> list[Operation]:
    """All operations of some migrations of an app, in their order."""
    modules = [import_module(f"{app_label}.migrations.{name}") for name in names]
    return [operation for module in modules for operation in module.Migration.operations]


def _new_models(app_label: str, before: ProjectState, after: ProjectState) -> list[type[Model]]:
    names = [key for key in after.models if key[0] == app_label and key not in before.models]
    return [after.apps.get_model(*key) for key in names]


class OnDatabase(Operation):
    """Run a function that needs no models: it makes triggers, or tables for search. It cannot be undone."""

    reversible = True

    def __init__(self, run: Callable[[BaseDatabaseSchemaEditor], None]) -> None:
        self.run = run

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Change nothing that models know of."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        """Run it."""
        self.run_functions(schema_editor)

    def run_functions(self, schema_editor: BaseDatabaseSchemaEditor) -> None:
        """Run it, whatever the models are."""
        self.run(schema_editor)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        """Do nothing: the tables themselves go."""

    def describe(self) -> str:
        """Say what ran."""
        return f"Run {self.run.__qualname__}"
