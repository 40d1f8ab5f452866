"""Operations of migrations that spare Django most of its work: it makes the classes of all related models anew after each.

Nearly every model refers to a workspace, so that is all of them, and most of what a first start computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState


class _Tables(Operation):
    """New tables whose models are made once, all of them together."""

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
        """Make them in their order."""
        for operation in self.operations:
            operation.database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        """Drop them, the last one first."""
        for operation in reversed(self.operations):
            operation.database_backwards(app_label, schema_editor, from_state, to_state)

    def describe(self) -> str:
        """Name each of them."""
        return "; ".join(operation.describe() for operation in self.operations)


class TablesUnlessThere(_Tables):
    """New tables that an earlier version may have made as another app's: there they stay as they are.

    Args:
        then: what else new tables need.
    """

    def __init__(self, operations: Sequence[Operation], then: Operation) -> None:
        super().__init__(operations)
        self.then = then

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        """Make them, unless the first one is there."""
        first = self.operations[0]
        assert isinstance(first, migrations.CreateModel)
        table = to_state.apps.get_model(app_label, first.name)._meta.db_table
        if table in schema_editor.connection.introspection.table_names():
            return
        super().database_forwards(app_label, schema_editor, from_state, to_state)
        self.then.database_forwards(app_label, schema_editor, from_state, to_state)


def tables_together(operations: Sequence[Operation]) -> list[Operation]:
    """Make neighbouring new tables one operation."""
    made: list[Operation] = []
    for is_table, run in groupby(operations, lambda one: isinstance(one, migrations.CreateModel)):
        group = list(run)
        made += [_Tables(group)] if is_table else group
    return made


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
