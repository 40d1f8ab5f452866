"""The gate: the only road to a server, for whoever asks.

In this order: resolve the tool in the caller's workspace; policy; approval; arguments; commit *requested*; call, within
time, slots and size; commit *finished* before anyone sees the result. A refusal at any step is an entry of its own, and
what cannot be recorded does not happen. Resources and prompts take the same road.
"""

from mcp_servers.client.values import BuiltinRequest
from mcp_servers.gate.abandoning import abandon_call
from mcp_servers.gate.builtin import abandon_builtin, call_builtin, refuse_builtin
from mcp_servers.gate.caller import Caller, SilentCaller
from mcp_servers.gate.checkpoints import is_unsent
from mcp_servers.gate.reads import get_prompt, read_resource
from mcp_servers.gate.sending import UNASKED
from mcp_servers.gate.tools import call_tool
from mcp_servers.gate.unoffered import refuse_unknown, refuse_unoffered

__all__ = [
    "UNASKED",
    "BuiltinRequest",
    "Caller",
    "SilentCaller",
    "abandon_builtin",
    "abandon_call",
    "call_builtin",
    "call_tool",
    "get_prompt",
    "is_unsent",
    "read_resource",
    "refuse_builtin",
    "refuse_unknown",
    "refuse_unoffered",
]
