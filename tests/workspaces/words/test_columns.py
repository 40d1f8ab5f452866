"""What people read of tables and columns is in words, which a catalogue of another language can translate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.utils import flatten_fieldsets
from django.db import models
from django.utils.functional import Promise

from audit.models import labels as of_audit
from chat.models import labels as of_chat
from mcp_servers.klavis import labels as of_klavis
from mcp_servers.models import labels as of_servers
from workspaces import labels as of_workspaces
from workspaces.audited_tables import audited_tables
from workspaces.changes import UNTOLD
from workspaces.words.columns import column_in_words, kind_of, value_in_words
from workspaces.words.formats import Formats, written_for

CATALOGUES = {
    "workspaces": of_workspaces,
    "audit": of_audit,
    "chat": of_chat,
    "mcp_servers": of_servers,
    "klavis": of_klavis,
}


def shown_columns() -> Iterator[models.Field[Any, Any]]:
    """Those of the admin's lists, filters and forms, and those that the log names where it says what changed."""
    for watched in audited_tables():
        yield from (one for one in watched.model._meta.concrete_fields if one.name not in UNTOLD)
    for model, page in admin.site._registry.items():
        columns = {
            one.name: one for one in model._meta.get_fields() if isinstance(one, models.Field)
        }
        if model._meta.app_label not in CATALOGUES:
            continue
        sets = page.fieldsets or [(None, {"fields": page.fields or list(columns)})]
        named = [
            *page.list_display,
            *page.list_filter,
            *flatten_fieldsets(sets),
            *page.readonly_fields,
        ]
        names = {one[0] if isinstance(one, tuple) else one for one in named}
        yield from (columns[name] for name in names if isinstance(name, str) and name in columns)


def test_every_column_that_people_see_has_words_of_its_own() -> None:
    """REL-3031: no label is made of a column's name, so each can be mended and translated."""
    bare = {
        f"{one.model.__name__}.{one.name}"
        for one in shown_columns()
        if not isinstance(one.verbose_name, Promise)
    }
    assert sorted(bare) == []


def test_no_word_is_kept_for_a_column_or_table_that_is_gone() -> None:
    """What nobody can see is not translated either."""
    everywhere = {one.name for model in apps.get_models() for one in model._meta.local_fields}
    assert sorted(of_workspaces.EVERYWHERE.keys() - everywhere) == []
    for label, words in CATALOGUES.items():
        tables = {one.__name__: one for one in apps.get_app_config(label).get_models()}
        fields = [one for model in tables.values() for one in model._meta.local_fields]
        known = {one.name for one in fields} | {
            f"{one.model.__name__}.{one.name}" for one in fields
        }
        assert sorted(words.COLUMNS.keys() - known) == [], label
        assert sorted(words.TABLES.keys() - tables.keys()) == [], label


def test_the_log_finds_a_table_by_its_kind() -> None:
    """REL-3032: two tables of one kind would take each other's words."""
    kinds = Counter(kind_of(one) for one in apps.get_models() if one._meta.app_label in CATALOGUES)
    assert [kind for kind, number in kinds.items() if number > 1] == []


@pytest.mark.parametrize(
    ("kind", "column", "words"),
    [
        ("bud", "system_prompt", "instructions"),
        ("workspace", "is_active", "open"),
        ("resource", "mime_type", "MIME type"),
        ("bud", "gone_since_long", "gone since long"),
        ("nothing known", "some_name", "some name"),
    ],
)
def test_a_column_has_its_words(kind: str, column: str, words: str) -> None:
    """REL-3032: a name of long ago stays readable."""
    assert column_in_words(kind, column) == words


@pytest.mark.parametrize(
    ("kind", "column", "value", "words"),
    [
        ("bud", "is_archived", True, "yes"),
        ("bud", "is_archived", False, "no"),
        ("bud", "system_prompt", "", "–"),
        ("bud", "owner", None, "–"),
        ("bud", "version", 3, "3"),
        ("membership", "role", "admin", "Admin"),
        ("call rule", "effect", "deny", "Refuse"),
        ("membership", "role", "of long ago", "of long ago"),
        ("membership", "suspended_at", "2026-03-01T10:30:00Z", "1 Mar 2026, 10:30 UTC"),
        ("membership", "suspended_at", "2026-02-31T10:30:00Z", "2026-02-31T10:30:00Z"),
        ("API token", "expires_at", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
        ("bud", "starter_prompts", ["One", "Two"], "One, Two"),
        ("bud", "parameters", {"top_p": 1}, '{"top_p": 1}'),
        ("nothing known", "some_name", [1, 2], "[1, 2]"),
    ],
)
def test_a_value_is_what_people_read(kind: str, column: str, value: object, words: str) -> None:
    """REL-3032: yes and no, choices and moments in words; what has none stays as it is."""
    with written_for(Formats(time_zone="Europe/Zurich" if "9999" in words else "UTC")):
        assert value_in_words(kind, column, value) == words
