"""The admin as one place of work: its pages grouped by what people do, and a first page that says how things are."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast
from weakref import WeakKeyDictionary

from allauth.account.decorators import secure_admin_login
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.decorators import method_decorator
from django.utils.functional import Promise
from django.utils.text import capfirst
from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _
from unfold.dataclasses import SearchResult
from unfold.sites import UnfoldAdminSite

from config.admin import dashboard
from workspaces.pages.admin_sections import AdminSection
from workspaces.restore_detection import is_unconfirmed
from workspaces.roles import Permission, has_permission

if TYPE_CHECKING:
    from workspaces.actors import Actor
    from workspaces.middleware import WorkspaceRequest
    from workspaces.models import Workspace

TITLES: Final[dict[AdminSection, Promise]] = {
    AdminSection.PEOPLE: _("People"),
    AdminSection.BUDS: _("Buds and models"),
    AdminSection.TOOLS: _("Tools"),
    AdminSection.RULES: _("Rules"),
    AdminSection.LOG: _("Log"),
    AdminSection.PLATFORM: _("Platform"),
}
"""In the order in which they are shown."""


@method_decorator(secure_admin_login, name="login")  # its own form knows no rate limits
class TrellisAdminSite(UnfoldAdminSite):
    """Django's admin with our groups and our first page."""

    index_template = "admin/dashboard.html"
    index_title = _("Overview")
    empty_value_display = "–"

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._sections: WeakKeyDictionary[HttpRequest, Sequence[Any]] = WeakKeyDictionary()
        """A page asks for its list up to four times, and each takes as long as a statement or two."""

    def get_urls(self) -> list[Any]:
        """Each list is a file, too."""
        from config.admin.list_export import (
            export_list,  # it needs admin classes, which need this site
        )

        export = path(
            "export/<slug:app_label>/<slug:model_name>/",
            self.admin_view(partial(export_list, site=self)),
            name="export_list",
        )
        return [export, *super().get_urls()]

    def password_change(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponseRedirect:
        """Lead to the one page where people change their password. Django's own lets the old one be guessed without end.

        Nor does it tell the log, or the person by mail.
        """
        return HttpResponseRedirect(reverse("account_change_password"))

    def password_change_done(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponseRedirect:
        """The same."""
        return HttpResponseRedirect(reverse("account_change_password"))

    def search(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """The pages of the sidebar by their names and groups; they are few, so there is one page of them.

        The interface's own search keeps for minutes what it found, whatever workspace and rights the person has by then.

        Raises:
            Http404: another one was asked for.
        """
        if request.GET.get("page", "1") != "1":
            raise Http404
        start = time.monotonic()
        words = request.GET.get("s", "").strip().casefold()
        if not words:
            return HttpResponse()
        found = [
            SearchResult(item["title"], group.get("title", ""), item["link"], "tag")
            for group in self.get_sidebar_list(request)
            for item in group["items"]
            if words in f"{item['title']} {group.get('title', '')}".casefold()
        ]
        name = "command_results" if "extended" in request.GET else "search_results"
        results = Paginator(found, max(1, len(found))).page(1)
        shown = {
            "results": results,
            "page_obj": results.paginator,
            "page_counter": 0,
            "execution_time": time.monotonic() - start,
        }
        template = f"unfold/helpers/{name}.html"
        return TemplateResponse(request, template, shown, headers={"HX-Trigger": "search"})

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> Sequence[Any]:
        """The pages that the person may open, by what they do there; by app where one app is asked for."""
        if app_label is not None:
            return cast("Sequence[Any]", super().get_app_list(request, app_label))
        if request not in self._sections:
            self._sections[request] = self._list_sections(request)
        return self._sections[request]

    def _list_sections(self, request: HttpRequest) -> Sequence[Any]:
        apps = super().get_app_list(request)
        pages: dict[AdminSection, list[Any]] = {section: [] for section in TITLES}
        for app in apps:
            for page in app["models"]:
                shown = self._registry[page["model"]]
                pages[shown.section].append({**page, "name": shown.page_name or page["name"]})
        return [
            {
                "name": title,
                "app_label": section.value,
                "app_url": "",
                "has_module_perms": True,
                "models": sorted(pages[section], key=lambda page: str(page["name"])),
            }
            for section, title in TITLES.items()
            if pages[section]
        ]

    def get_sidebar_list(self, request: HttpRequest) -> list[dict[str, Any]]:
        """The same groups beside every page, with the product's own pages where people look for them."""
        bound = cast("WorkspaceRequest", request)
        own = product_pages(bound.workspace, bound.actor) if bound.workspace is not None else {}
        if bound.user.is_superuser:
            own[AdminSection.PLATFORM] = platform_pages()
        listed = {group["app_label"]: group for group in self.get_app_list(request)}
        groups: list[dict[str, Any]] = [
            {"items": [_item(request, _now("Overview"), reverse("admin:index"), is_exact=True)]}
        ]
        for section, title in TITLES.items():
            pages = listed[section.value]["models"] if section.value in listed else []
            items = [_item(request, page.title, page.url) for page in own.get(section, ())]
            items += [
                _item(request, page["name"], page["admin_url"])
                for page in pages
                if page["admin_url"]
            ]
            if items:
                groups.append({"title": title, "items": items})
        return groups

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """The overview."""
        bound = cast("WorkspaceRequest", request)
        overview = (
            dashboard.read(bound.workspace, bound.actor) if bound.workspace is not None else None
        )
        groups = self.get_sidebar_list(request)[1:]
        context = {**(extra_context or {}), "overview": overview, "groups": groups}
        context["is_restored"] = bound.user.is_superuser and is_unconfirmed()
        return super().index(request, context)


@dataclass(frozen=True, slots=True)
class ProductPage:
    """A page of the product outside the admin."""

    title: str
    url: str


def product_pages(workspace: Workspace, actor: Actor) -> dict[AdminSection, list[ProductPage]]:
    """Where the workspace's daily work is done, as far as the person may go there."""
    found: dict[AdminSection, list[ProductPage]] = {}
    if has_permission(actor, Permission.MANAGE_MEMBERS, workspace_id=workspace.pk):
        found[AdminSection.PEOPLE] = [
            ProductPage(_now("People"), reverse("workspaces:members", args=[workspace.slug])),
            ProductPage(_now("Invite people"), reverse("workspaces:invite", args=[workspace.slug])),
            ProductPage(_now("Spending limits"), reverse("chat:spending", args=[workspace.slug])),
        ]
    if has_permission(actor, Permission.MANAGE_SERVERS, workspace_id=workspace.pk):
        found[AdminSection.TOOLS] = [
            ProductPage(_now("Servers"), reverse("mcp_servers:servers", args=[workspace.slug])),
            ProductPage(_now("Catalogue"), reverse("mcp_servers:catalogue", args=[workspace.slug])),
            ProductPage(
                _now("Other MCP clients"), reverse("mcp_servers:clients", args=[workspace.slug])
            ),
        ]
        found[AdminSection.RULES] = [
            ProductPage(
                _now("Call rules"), reverse("mcp_servers:call_rules", args=[workspace.slug])
            )
        ]
    if has_permission(actor, Permission.VIEW_AUDIT, workspace_id=workspace.pk):
        found[AdminSection.LOG] = [
            ProductPage(_now("Audit log"), reverse("audit:entries", args=[workspace.slug])),
            ProductPage(_now("Reports"), reverse("audit:reports", args=[workspace.slug])),
            ProductPage(_now("Alerts"), reverse("audit:alerts", args=[workspace.slug])),
        ]
    if has_permission(actor, Permission.MANAGE_WORKSPACE, workspace_id=workspace.pk):
        found[AdminSection.RULES] = [
            *found.get(AdminSection.RULES, ()),
            ProductPage(
                _now("Rules of this workspace"), reverse("mcp_servers:rules", args=[workspace.slug])
            ),
            ProductPage(_now("Webhooks"), reverse("chat:webhooks", args=[workspace.slug])),
            ProductPage(
                _now("Settings as a file"), reverse("workspace_file", args=[workspace.slug])
            ),
        ]
    return found


def platform_pages() -> list[ProductPage]:
    """Pages for the owner of the installation, also before there is a workspace."""
    return [
        ProductPage(_now("State of the installation"), reverse("platform_state")),
        ProductPage(_now("Shared model providers"), reverse("chat:shared_providers")),
        ProductPage(_now("Audit of the platform"), reverse("audit:platform")),
    ]


def _item(request: HttpRequest, title: str, url: str, *, is_exact: bool = False) -> dict[str, Any]:
    is_here = request.path == url if is_exact else request.path.startswith(url)
    return {
        "title": capfirst(title),
        "link": url,
        "active": is_here,
        "has_permission": True,
    }
