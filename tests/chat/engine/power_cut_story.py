"""Run as a process of its own: a message, a call and a checkpoint on a disk that forgets what nobody synced.

Prints where it left the database as a power cut would have, at each moment that promises something.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.power_cut import ForgetfulDisk


def main(folder: Path) -> None:
    """Tell the story; `folder` holds a migrated database."""
    disk = ForgetfulDisk()
    import django

    django.setup()
    from django.conf import settings

    from audit.models import AuditCheckpoint
    from audit.sealing import external_checkpoint
    from audit.sealing.checkpoints import make_checkpoint
    from audit.sealing.sealer import seal_pending
    from mcp_servers.client.connections import runtime
    from tests.chat.conftest import make_chat
    from tests.factories import make_tenant
    from tests.fakes.mcp_server import CountingServer
    from tests.fakes.scripted_model import ScriptedModel
    from tests.mcp_servers.factories import http_server, looked_at
    from workspaces import restore_detection

    database = Path(str(settings.DATABASES["default"]["NAME"]))
    report: dict[str, Any] = {}

    def cut(moment: str) -> None:
        report[moment] = str(disk.cut_power(database, folder / f"{moment}.sqlite3"))

    class Server(CountingServer):
        def _add_tools(self) -> None:
            super()._add_tools()

            @self.server.tool(annotations=None)
            def pay(what: str) -> str:
                """Do what must not be done twice."""
                cut("executed")
                return what

    model, server = ScriptedModel(), Server()
    tenant = make_tenant("acme")
    row = looked_at(tenant, http_server(tenant, server.url, name="counting"))
    chat = make_chat(tenant, model, server, row)
    model.call(("counting__pay", {"what": "rent"}))
    model.say("Paid.")
    sent = chat.send("pay the rent")
    cut("accepted")
    report["message"] = sent.message.pk.hex
    chat.watching.turn("waiting_for_approval")
    from chat.services.approvals import decide
    from chat.values import Decision

    decide(call=chat.calls()[0], decision=Decision.APPROVED, actor=chat.actor)
    chat.watching.turn("completed")
    cut("answered")
    report["call"] = chat.calls()[0].pk.hex
    restore_detection.beat()
    while seal_pending().sealed:
        pass
    made = make_checkpoint()
    cut("signed")
    outside = external_checkpoint.read()
    assert made is not None
    assert outside is not None
    assert AuditCheckpoint.objects.count() == outside.number
    report |= {
        "number": outside.number,
        "epoch": json.loads(Path(settings.TRELLIS.data_dir, "epoch.json").read_text())["epoch"],
    }
    runtime.shutdown(2.0)
    print(json.dumps(report))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
