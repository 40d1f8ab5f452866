"""Every form of the product has a twin in the REST interface, or a reason not to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest
from django.contrib import admin
from django.test import Client, RequestFactory
from django.urls import URLPattern, reverse

from config.rest.api import _document
from tests.api.twins import ADMIN, DOWNLOADS, LISTS, PAGES, WITHOUT, operations_in
from tests.isolation.routes import SAMPLES, address, route_names
from tests.isolation.world import World
from workspaces.middleware import bind_workspace
from workspaces.models import User
from workspaces.pages.model_admin import WorkspaceModelAdmin

pytestmark = pytest.mark.django_db
CHANGING = {"POST", "PUT", "PATCH", "DELETE"}
SAVED_VIEWS = "a list's saved views"
PASSWORD = "auth_user_password_change"
CLASSES = {model._meta.label: found for model, found in admin.site._registry.items()}
TABLES = (PAGES, ADMIN, LISTS, DOWNLOADS)


def described() -> set[str]:
    """Every operation of the description, as the tables name them."""
    return {
        f"{method.upper()} {path.removeprefix('/api/')}"
        for path, operations in _document()["paths"].items()
        for method in operations
        if method in {"get", "post", "put", "patch", "delete"}
    }


def methods_of(name: str, world: World) -> set[str]:
    """What the route says it takes; of one that says nothing, everything."""
    client = world.a.client("owner", raise_request_exception=False)
    answer = client.options(address(name, SAMPLES[name], world.a))
    allowed = answer.headers.get("Allow")
    return {one.strip() for one in allowed.split(",")} if allowed else CHANGING | {"GET"}


def test_every_form_has_a_twin_or_a_reason(world: World, superuser: User) -> None:
    """REL-1105: a new form is red until its operation is named, or why there is none."""
    pages = [name for name in route_names() if not name.startswith("api:")]
    forms = {name for name in pages if methods_of(name, world) & CHANGING}
    missing = sorted(forms - set(PAGES) - set(WITHOUT))
    assert not missing, f"name the operation of each in tests/api/twins.py: {missing}"
    gone = sorted(set(PAGES) - forms)
    assert not gone, f"these forms do not exist any more: {gone}"
    unknown = sorted(
        (set(WITHOUT) | set(DOWNLOADS)) - set(pages) - set(offered_by_admin(world, superuser))
    )
    assert not unknown, f"these routes do not exist any more: {unknown}"


def test_everything_in_the_admin_has_a_twin_or_a_reason(world: World, superuser: User) -> None:
    """REL-1105: adding, changing and deleting, each action and each table in a form."""
    offered = set(offered_by_admin(world, superuser))
    missing = sorted(offered - set(ADMIN) - set(WITHOUT))
    assert not missing, f"name the operation of each in tests/api/twins.py: {missing}"
    assert not set(ADMIN) - offered, "these do not exist any more"
    assert set(LISTS) == set(CLASSES)


def test_each_twin_is_described() -> None:
    """REL-1105: an operation that the tables name is there."""
    named = {
        one
        for table in TABLES
        for operations in table.values()
        for one in operations_in(operations)
    }
    assert not named - described()


def test_nothing_has_both_a_twin_and_a_reason() -> None:
    """REL-1105."""
    assert not set(WITHOUT) & {*PAGES, *ADMIN}


def test_a_form_that_nobody_named_is_found(world: World) -> None:
    """REL-1105: what a route takes is read from the route itself."""
    assert methods_of("workspaces:members", world) == {"GET", "HEAD"}
    assert "POST" in methods_of("workspaces:invite", world)
    assert "POST" in methods_of("account_login", world)


def offered_by_admin(world: World, superuser: User) -> Iterator[str]:
    """What the owner of a workspace, and the platform's owner, may do in the admin."""
    yield SAVED_VIEWS
    for label, found in CLASSES.items():
        request = a_request(world, superuser, found)
        row = row_of(label, world)
        if found.has_add_permission(request):
            yield f"{label} add"
        for verb in ("change", "delete"):
            if getattr(found, f"has_{verb}_permission")(request, row):
                yield f"{label} {verb}"
        for name in found.get_actions(request):
            yield f"{label} {name}"
        for inline in found.get_inlines(request, row):
            yield f"{label} rows of {cast('Any', inline).model._meta.label}"
        names = {one.name or "" for one in found.get_urls()} - {""}
        if PASSWORD in names:
            yield f"{label} password"
        usual = label.lower().replace(".", "_")
        own = {name for name in names if not name.startswith(usual)}
        assert own <= {PASSWORD}, f"an address of its own: {label} {own}"


def a_request(world: World, superuser: User, found: Any) -> Any:
    """Somebody who may do the most with these rows."""
    request: Any = RequestFactory().get("/admin/")
    request.request_id = "test"
    is_of_workspace = isinstance(found, WorkspaceModelAdmin)
    request.user = world.a.tenant.owner if is_of_workspace else superuser
    bind_workspace(request, world.a.tenant.workspace)
    return request


def row_of(label: str, world: World) -> Any:
    """A row of that model, if the world has one: without it, what is allowed of rows at all."""
    return next((row for row in world.a.rows.values() if row._meta.label == label), None)


def test_the_admin_has_no_further_pages() -> None:
    """REL-1105: beside those of its classes, only signing in and out, and files of lists."""
    own = {
        one.name
        for one in admin.site.get_urls()
        if isinstance(one, URLPattern) and one.name not in {None, "view_on_site", "app_list"}
    }
    known = {"index", "login", "logout", "password_change", "password_change_done"}
    assert own <= known | {"autocomplete", "jsi18n", "search", "export_list"}
    assert Client().get(reverse("admin:password_change")).status_code == 302
