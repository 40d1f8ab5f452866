"""The chat's page that browsers keep for times without a connection."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.test import Client

from tests.factories import TwoTenants

pytestmark = pytest.mark.django_db


def boot_of(content: bytes) -> dict[str, Any]:
    """What a page tells the application."""
    found = re.search(rb'<script id="boot" type="application/json">(.*?)</script>', content)
    assert found
    told: dict[str, Any] = json.loads(found[1])
    return told


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


def test_nobody_keeps_the_page_of_a_workspace_that_they_cannot_enter(
    two_workspaces: TwoTenants,
) -> None:
    """SEC-396: strangers get nothing, and who is signed out is led to the sign-in."""
    home = f"/w/{two_workspaces.a.workspace.slug}/"
    assert two_workspaces.b.client("owner").get(f"{home}shell/").status_code == 404
    assert Client().get(f"{home}shell/").status_code == 302


def test_the_worker_keeps_the_files_of_one_release() -> None:
    """REL-575: the chat's and an open conversation's, found in the build; caches are named after them."""
    text = Client().get("/worker.js").content.decode()
    files = re.findall(r'"/static/web/([^"]+)"', text.partition("];")[0])
    assert {"plain.css", "favicon.svg", "offline.js"} <= set(files)
    assert not any("mermaid" in name or "KaTeX" in name for name in files)
    assert re.search(r'const FILES = "trellis-files-[0-9a-f]{12}"', text)
