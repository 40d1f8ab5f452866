"""The invented log is a tool of the benchmarks: it needs a database of its own, and the product has none of it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from django.conf import settings

from audit.models import AuditEntry, AuditSeal
from bench.invented_log import main
from tests.factories import UserFactory
from workspaces.models import Workspace

_PRODUCT = ("audit", "chat", "config", "mcp_servers", "workspaces")
_WRITES = {"audit/services/recording.py", "audit/services/spool.py", "audit/sealing/sealer.py"}
"""What writes entries and seals: `record()`, what `record()` spooled, and the sealer."""


@pytest.mark.django_db
def test_it_fills_an_unused_database_and_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    """SEC-240: where people have accounts nothing is invented, and no log is added to."""
    asked = ["--entries", "20", "--workspace", "invented", "--days", "1"]
    assert main(asked) == 0
    workspace = Workspace.objects.get(slug="invented")
    assert AuditSeal.objects.filter(chain_id=workspace.pk).count() == 20
    with pytest.raises(SystemExit):
        main(asked)
    UserFactory()
    with pytest.raises(SystemExit):
        main([*asked[:3], "another", *asked[4:]])
    assert "in use" in capsys.readouterr().err
    assert AuditEntry.objects.for_workspace(workspace).count() == 20


def test_only_the_sealer_and_record_write_the_log() -> None:
    """SEC-240: no other module of the product makes an entry or a seal, and none reaches into the benchmarks."""
    found = set()
    for part in _PRODUCT:
        for path in (settings.BASE_DIR / part).rglob("*.py"):
            name = path.relative_to(settings.BASE_DIR).as_posix()
            if "migrations" not in path.parts and _writes_log(path):
                found.add(name)
    assert found <= _WRITES, found - _WRITES


def _writes_log(path: Path) -> bool:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "bench":
            return True
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {
            "AuditEntry",
            "AuditSeal",
            *(
                f"{model}.{manager}.{verb}"
                for model in ("AuditEntry", "AuditSeal")
                for manager in ("objects", "unscoped")
                for verb in ("create", "bulk_create", "get_or_create", "update_or_create")
            ),
        }:
            return True
    return False
