"""Every admin class, walked by an administrator of one workspace with the rows of another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
from django.contrib import admin
from django.db import models
from django.forms import ModelChoiceField
from django.test import RequestFactory
from django.urls import reverse

from mcp_servers.models import McpServer, ServerScope
from tests.extent import one_of
from tests.factories import CANARY
from tests.isolation.conftest import States
from tests.isolation.form_choices import check_choices
from tests.isolation.state import state_of, tenant_models
from tests.isolation.world import Side, World
from workspaces.middleware import bind_workspace
from workspaces.pages.model_admin import WorkspaceModelAdmin

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

pytestmark = pytest.mark.django_db
ADMINS = {model._meta.label: found for model, found in admin.site._registry.items()}
TENANT_LABELS = sorted({model._meta.label for model in tenant_models()} & set(ADMINS))
PLATFORM_LABELS = sorted(set(ADMINS) - set(TENANT_LABELS))
ROLES = ("owner", "admin")
LABELS_AND_ROLES = [(label, role) for label in TENANT_LABELS for role in one_of(ROLES, label)]
"""Each class as one of them; a run for a release tries both."""


def row_of(label: str, side: Side) -> models.Model:
    """The side's row of that model."""
    return next(row for row in side.rows.values() if row._meta.label == label)


def url(label: str, page: str, *arguments: Any) -> str:
    app, _, model = label.lower().partition(".")
    return reverse(f"admin:{app}_{model}_{page}", args=arguments)


def shown_on(answer: Any, *asked: str) -> str:
    """What the answer says, without what the address itself said."""
    text = f"{answer.headers} {answer.content.decode()}"
    for part in asked:
        text = text.replace(part, "")
    return text


@pytest.mark.parametrize(("label", "role"), LABELS_AND_ROLES)
def test_lists_searches_and_filters_show_own_rows_only(world: World, label: str, role: str) -> None:
    """SEC-01, SEC-04."""
    client = world.a.client(role)
    foreign = world.b.tenant.workspace.pk
    queries = [
        *("", f"q={CANARY}", "all=", "o=1.2.3", "e=1", "p=1", "_popup=1"),
        *(f"workspace__id__exact={foreign}", f"workspace={foreign}", f"workspace__slug={CANARY}"),
        *(f"workspace__in={foreign}", f"id__in={row_of(label, world.b).pk}"),
        *(f"pk={row_of(label, world.b).pk}", "_to_field=workspace&_popup=1"),
        *("workspace__name__startswith=c", "user__password__startswith=a", "owner__email=x"),
    ]
    for query in queries:
        answer = client.get(f"{url(label, 'changelist')}?{query}", follow=True)
        assert answer.status_code in {200, 400, 403}, query
        shown = shown_on(answer, CANARY) if f"={CANARY}" in query else shown_on(answer)
        assert CANARY not in shown, query


@pytest.mark.parametrize(("label", "role"), LABELS_AND_ROLES)
def test_files_of_lists_hold_own_rows_only(world: World, label: str, role: str) -> None:
    """SEC-01, SEC-04."""
    app, _, model = label.lower().partition(".")
    answer: Any = world.a.client(role).get(reverse("admin:export_list", args=[app, model]))
    assert answer.status_code in {200, 404}
    shown = b"".join(answer.streaming_content) if answer.status_code == 200 else answer.content
    assert CANARY.encode() not in shown


@pytest.mark.parametrize(("label", "role"), LABELS_AND_ROLES)
def test_no_page_of_another_workspaces_row_opens(
    world: World, before: States, label: str, role: str
) -> None:
    """SEC-01, SEC-02: change, delete and history answer as for a row that does not exist."""
    client = world.a.client(role)
    pk = row_of(label, world.b).pk
    for page in ("change", "delete", "history"):
        for method in ("get", "post"):
            address = url(label, page, pk)
            answer = getattr(client, method)(address, {"post": "yes"})
            assert answer.status_code in {302, 403, 404}, (page, method)
            assert CANARY not in shown_on(answer)
            if (
                answer.status_code == 302
            ):  # Django sends to the index and says that there is no such row
                assert CANARY not in shown_on(client.get(answer["Location"]))
    assert state_of(world.b) == before.b


@pytest.mark.parametrize(("label", "role"), LABELS_AND_ROLES)
def test_no_action_touches_another_workspaces_row(
    world: World, before: States, label: str, role: str
) -> None:
    """SEC-01: every action, and Django's own deletion, with the other side's id selected."""
    client = world.a.client(role)
    names = {"delete_selected", *(_action_name(one) for one in ADMINS[label].actions or ())}
    for name in names:
        body = {
            "action": name,
            "_selected_action": [str(row_of(label, world.b).pk)],
            "select_across": "1",
            "post": "yes",
        }
        for sent in ({"select_across": "0"}, {"select_across": "0", "confirmed": "yes"}):
            answer = client.post(url(label, "changelist"), {**body, **sent}, follow=True)
            assert CANARY not in shown_on(answer)
    assert state_of(world.b) == before.b


def _action_name(action: Any) -> str:
    return action if isinstance(action, str) else str(action.__name__)


@pytest.mark.parametrize(("label", "role"), LABELS_AND_ROLES)
def test_forms_offer_own_rows_only(world: World, label: str, role: str) -> None:
    """SEC-04: the pages of the caller's own rows, and every choice of their forms."""
    client = world.a.client(role)
    pk = row_of(label, world.a).pk
    pages = [url(label, "add"), url(label, "change", pk), url(label, "delete", pk)]
    for address in [*pages, url(label, "history", pk)]:
        answer = client.get(address, follow=True)  # buds have an editor of their own
        assert answer.status_code in {200, 403}, address
        assert CANARY not in shown_on(answer)
    request = a_request(world.a, role)
    found = ADMINS[label]
    for obj in (None, row_of(label, world.a)):
        is_open = (
            found.has_change_permission(request, obj) if obj else found.has_add_permission(request)
        )
        if not is_open:
            continue
        form_class = found.get_form(request, obj, change=obj is not None)
        for name, field in form_class(instance=obj).fields.items():
            check_choices(f"{label}.{name}", field, world)


@pytest.mark.parametrize("label", TENANT_LABELS)
def test_forms_offer_nobodys_own_server(world: World, label: str) -> None:
    """SEC-226: a person's own server is in no choice of anybody else's form."""
    side = world.a
    own = McpServer.objects.create(
        workspace=side.tenant.workspace,
        owner=side.tenant.member,
        scope=ServerScope.PERSONAL,
        name="my own",
        transport="streamable_http",
        url="https://own.example.org/mcp",
    )
    request = a_request(side, "owner")
    found = ADMINS[label]
    for obj in (None, row_of(label, side)):
        is_open = (
            found.has_change_permission(request, obj) if obj else found.has_add_permission(request)
        )
        if not is_open:
            continue
        form = found.get_form(request, obj, change=obj is not None)
        for name, field in form(instance=obj).fields.items():
            if isinstance(field, ModelChoiceField) and field.queryset is not None:
                is_offered = field.queryset.model is McpServer and own in field.queryset
                assert not is_offered, f"{label}.{name}"


# What is saved by the admin's own form, tracked and recorded, because no service has rules of its own for it.
FORMS_OF_THEIR_OWN = {"chat.ProviderModel"}


@pytest.mark.parametrize("label", TENANT_LABELS)
def test_what_can_be_saved_is_saved_by_a_service(world: World, label: str) -> None:
    """SEC-226: every admin class whose rows can be made or changed calls the service that REST calls."""
    found, request = ADMINS[label], a_request(world.a, "owner")
    row = row_of(label, world.a)
    is_editable = found.has_add_permission(request) or (
        found.has_change_permission(request, row)
        and set(found.get_form(request, row, change=True).base_fields)
    )
    has_own = any("save_model" in vars(cls) for cls in _own_bases(type(found)))
    assert has_own or not is_editable or label in FORMS_OF_THEIR_OWN


def _own_bases(cls: type) -> list[type]:
    return list(cls.__mro__[: cls.__mro__.index(WorkspaceModelAdmin)])


def a_request(side: Side, role: str) -> WorkspaceRequest:
    """A request as the middleware leaves it."""
    request = cast("WorkspaceRequest", RequestFactory().get("/admin/"))
    request.user = side.tenant.people[role]
    request.request_id = "test"
    bind_workspace(request, side.tenant.workspace)
    return request


def test_autocomplete_gives_nothing_of_another_workspace(world: World) -> None:
    """SEC-04: for every relation of every admin class."""
    address = reverse("admin:autocomplete")
    for role in ROLES:
        client = world.a.client(role)
        for model in admin.site._registry:
            for field in model._meta.get_fields():
                if not isinstance(field, models.ForeignKey | models.ManyToManyField):
                    continue
                query: dict[str, Any] = {
                    "app_label": model._meta.app_label,
                    "model_name": model._meta.model_name,
                    "field_name": field.name,
                    "term": "",
                }
                answer = client.get(address, query)
                assert answer.status_code in {200, 403, 404}
                assert CANARY not in shown_on(answer)


@pytest.mark.parametrize("label", PLATFORM_LABELS)
def test_the_platforms_tables_are_closed_to_workspaces(
    world: World, before: States, label: str
) -> None:
    """SEC-01: nobody but a superuser opens them."""
    for role in (*ROLES, "member", "auditor"):
        client = world.a.client(role)
        for address in (url(label, "changelist"), url(label, "add")):
            assert client.get(address).status_code in {302, 403}
            assert client.post(address, {}).status_code in {302, 403}
    assert (state_of(world.a), state_of(world.b)) == (before.a, before.b)


@pytest.mark.parametrize("role", ["member", "auditor"])
def test_members_do_not_get_into_the_admin(world: World, role: str) -> None:
    """SEC-07."""
    client = world.a.client(role)
    for label in ["", *TENANT_LABELS]:
        address = url(label, "changelist") if label else reverse("admin:index")
        answer = client.get(address)
        assert answer.status_code in {302, 403}
        assert CANARY not in shown_on(answer)


def test_the_index_and_the_sidebar_tell_nothing(world: World) -> None:
    """SEC-12."""
    for role in ROLES:
        answer = world.a.client(role).get(reverse("admin:index"))
        assert answer.status_code == 200
        assert CANARY not in shown_on(answer)


def test_the_admin_has_its_own_strict_policy(world: World) -> None:
    """SEC-84: what its interface needs and no more; every status."""
    client = world.a.client("admin")
    for address in ("/admin/", "/admin/nothing/", url("mcp_servers.McpServer", "changelist")):
        policy = client.get(address)["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        script = next(part for part in policy.split("; ") if part.startswith("script-src"))
        assert "unsafe-inline" not in script


def test_admin_changes_need_csrf_proof(world: World) -> None:
    """SEC-22."""
    client = world.a.client("owner", enforce_csrf_checks=True)
    before = state_of(world.a)
    for label in TENANT_LABELS:
        pk = row_of(label, world.a).pk
        pages = [url(label, "add"), url(label, "change", pk), url(label, "delete", pk)]
        for address in [*pages, url(label, "changelist")]:
            assert client.post(address, {"post": "yes"}).status_code == 403
    assert state_of(world.a) == before


def test_secrets_are_never_shown_or_overwritten_by_their_mask(world: World) -> None:
    """SEC-93: no page holds a stored secret."""
    client = world.a.client("owner")
    for label in TENANT_LABELS:
        row = row_of(label, world.a)
        for address in (url(label, "changelist"), url(label, "change", row.pk)):
            answer = client.get(address)
            assert "seen-header" not in shown_on(answer)
            assert "seen-key" not in shown_on(answer)
