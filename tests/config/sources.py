"""Our own source files that hold texts for people."""

from __future__ import annotations

from typing import Final

from config.env import ROOT

FOLDERS: Final = (ROOT / "templates", *ROOT.glob("*/templates"), *ROOT.glob("*/*/templates"))


TEMPLATES: Final = sorted(
    (folder, path)
    for folder in FOLDERS
    for path in folder.rglob("*.*")
    if path.suffix in {".html", ".txt"}
)


#: Programs of their own, without Django: what checks an export, and what reads a document.
ON_THEIR_OWN: Final = {"audit/proof/trellis_verify.py", "chat/documents/child.py"}


APPS: Final = ("audit", "chat", "config", "mcp_servers", "workspaces")
