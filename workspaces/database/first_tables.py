"""Make the tables of a new database without making nearly all models' classes anew after each step.

After each operation of a migration Django makes the class of its model anew, and those of all models that are related to it
over any number of steps: nearly every model refers to a workspace, so that is most of them. That is nine tenths of what a
first start would compute. Where there is no row yet, the model's own class is enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.recorder import MigrationRecorder
from django.db.migrations.state import ProjectState


def is_new(connection: BaseDatabaseWrapper) -> bool:
    """Tell whether no migration was ever applied to a database."""
    return not MigrationRecorder(connection).applied_migrations()


@contextmanager
def only_changed_models() -> Iterator[None]:
    """Make the changed model's class anew, and no other, while this lasts.

    What runs functions of Python on models has all of them made anew before, as Django does for states that it calls
    delayed.
    """
    plain = ProjectState.reload_model

    def reload_model(
        self: ProjectState, app_label: str, model_name: str, delay: bool = False
    ) -> None:
        if "apps" in self.__dict__:
            self.is_delayed = True
            self._reload({(app_label, model_name)})  # type: ignore[attr-defined]

    ProjectState.reload_model = reload_model  # type: ignore[method-assign]
    try:
        yield
    finally:
        ProjectState.reload_model = plain  # type: ignore[method-assign]
