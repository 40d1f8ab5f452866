"""The chat's page that browsers keep for times without a connection."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client, override_settings

from tests.factories import TwoTenants
from workspaces.models import Membership

pytestmark = pytest.mark.django_db


def boot_of(content: bytes) -> dict[str, Any]:
    """What a page tells the application."""
    found = re.search(rb'<script id="boot" type="application/json">(.*?)</script>', content)
    assert found
    body: dict[str, Any] = json.loads(found[1])
    return body


def worker() -> tuple[set[str], str]:
    """The names of the files that the worker keeps, and the release that it is of."""
    text = Client().get("/worker.js").content.decode()
    listed = re.findall(r'"/static/web/([^"]+)"', text.partition("];")[0])
    found = re.search(r'"trellis-files-([0-9a-f]{12})"', text)
    assert found
    return {name.replace("\\u002D", "-") for name in listed}, found[1]


def test_the_kept_page_holds_its_person_and_no_token(two_workspaces: TwoTenants) -> None:
    """SEC-396: no token, no conversation, no other workspace; and no cache on the way keeps it."""
    tenant = two_workspaces.a
    home = f"/w/{tenant.workspace.slug}/"
    answer = tenant.client("member").get(f"{home}shell/")
    boot = boot_of(answer.content)
    assert boot["is_kept"]
    assert (boot["csrf_token"], boot["workspaces"], boot["conversation_id"]) == ("", [], None)
    assert boot["workspace"]["slug"] == tenant.workspace.slug
    assert answer["Cache-Control"] == "private, no-store"
    assert "script-src 'self' 'nonce-" in answer["Content-Security-Policy"]
    loaded = tenant.client("member").get(home)
    assert not boot_of(loaded.content)["is_kept"]
    assert loaded["Content-Security-Policy"].count("frame-src") == 1


def test_a_message_is_told_once_and_where_one_arrives(two_workspaces: TwoTenants) -> None:
    """REL-2159: the page that browsers keep takes it from nobody."""
    tenant = two_workspaces.a
    client = tenant.client("admin")
    home = f"/w/{tenant.workspace.slug}/"
    mine = Membership.objects.for_workspace(tenant.workspace).get(user=tenant.people["admin"])
    answer = client.post(f"{home}people/{mine.pk}/role/", {"role": "member"})
    assert answer["Location"] == home
    assert boot_of(client.get(f"{home}shell/").content)["messages"] == []
    shown = {"tone": "ok", "text": "Saved. You are a member of this workspace now."}
    assert boot_of(client.get(home).content)["messages"] == [shown]
    assert boot_of(client.get(home).content)["messages"] == []


def test_nobody_keeps_the_page_of_a_workspace_that_they_cannot_enter(
    two_workspaces: TwoTenants,
) -> None:
    """SEC-396: strangers get nothing, and who is signed out is led to the sign-in."""
    home = f"/w/{two_workspaces.a.workspace.slug}/"
    assert two_workspaces.b.client("owner").get(f"{home}shell/").status_code == 404
    assert Client().get(f"{home}shell/").status_code == 302


def test_the_worker_keeps_the_files_of_one_release() -> None:
    """REL-575: the chat's and an open conversation's, found in the build; caches are named after them."""
    files, _release = worker()
    assert {"plain.css", "favicon.svg", "offline.js"} <= files
    assert not any("mermaid" in name or "KaTeX" in name for name in files)


def test_each_build_has_caches_of_its_own(tmp_path: Path) -> None:
    """REL-575: another file, or another content of one without a hash in its name; else the caches stay."""

    def release(script: str, style: str) -> str:
        manifest = {
            "src/chat.tsx": {
                "file": "chat-1.js",
                "imports": ["_app.js"],
                "assets": ["katex.woff2"],
            },
            "_app.js": {"file": script, "imports": ["src/chat.tsx"], "css": ["app-1.css"]},
            "src/audit.ts": {"file": "audit-1.js"},
        }
        build = tmp_path / f"{script}-{style}"
        build.mkdir(exist_ok=True)
        (build / "manifest.json").write_text(json.dumps(manifest))
        (build / "plain.css").write_text(style)
        with override_settings(WEB_DIST=build):
            files, source = worker()
        wanted = {"plain.css", "favicon.svg", "offline.js", "chat-1.js", script, "app-1.css"}
        assert files == wanted
        return source

    first = release("app-1.js", "a {}")
    assert release("app-1.js", "a {}") == first
    assert len({first, release("app-2.js", "a {}"), release("app-1.js", "b {}")}) == 3
