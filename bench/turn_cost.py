"""`python -m bench.turn_cost [turns]`: what a turn costs: the time to its first token and to its end, and CPU of this process.

Once for answers of five tokens, and once for turns that call a tool and then answer.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from contextlib import nullcontext
from statistics import median
from typing import TYPE_CHECKING

from bench.database import own_database
from bench.run import peer, prepare

if TYPE_CHECKING:
    from bench.ground import Ground

WARM_UP = 5


def main() -> int:
    """Measure, and print one line for each kind of turn."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    url = os.environ.get("TEST_DATABASE_URL")
    with (
        tempfile.TemporaryDirectory(prefix="trellis-bench-") as folder,
        peer("model") as model_port,
        peer("tools") as tools_port,
        own_database(url) if url else nullcontext() as database_url,
    ):
        prepare(folder, database_url)
        from bench.ground import make_ground
        from mcp_servers.client.connections import runtime

        ground = make_ground(
            model_url=f"http://127.0.0.1:{model_port}/v1",
            tools_url=f"http://127.0.0.1:{tools_port}/mcp",
            gateway_url=None,
        )
        for name, text in (("five tokens", "5 0"), ("a tool, then five tokens", "call")):
            sys.stdout.write(f"{name}: {asyncio.run(_measure(ground, text, count))}\n")
        runtime.shutdown(2.0)
    return 0


async def _measure(ground: Ground, text: str, count: int) -> str:
    from bench.measures import _Watch
    from chat.models import Bud, Conversation
    from chat.services.conversations import create_conversation
    from chat.services.turns import send_message
    from workspaces.database import in_database

    def begin() -> Conversation:
        servers = {"servers": [str(ground.tool.server_id)]}
        buds = Bud.objects.for_workspace(ground.bud.workspace_id).filter(pk=ground.bud.pk)
        buds.update(mcp_config=servers)
        bud = buds.select_related("provider").get()
        return create_conversation(bud=bud, owner=ground.user, actor=ground.actor)

    first, whole, cpu = [], [], 0.0
    for number in range(count + WARM_UP):
        watch = _Watch(await in_database(begin))
        if number == WARM_UP:
            cpu = time.process_time()
        start = time.perf_counter()
        await in_database(
            send_message,
            conversation=watch.conversation,
            client_id=str(number),
            text=text,
            actor=ground.actor,
        )
        await watch.ended.wait()
        watch.close()
        if number >= WARM_UP:
            first.append((watch.first or start) - start)
            whole.append(time.perf_counter() - start)
    cpu = time.process_time() - cpu
    return (
        f"first token p50 {median(first) * 1000:.1f} ms, whole p50 {median(whole) * 1000:.1f} ms, "
        f"CPU {cpu / count * 1000:.1f} ms a turn"
    )


if __name__ == "__main__":
    sys.exit(main())
