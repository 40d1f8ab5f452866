"""How a hosted server is reached. The only place where its URL is revealed for a connection."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext_noop as _

from mcp_servers.client.errors import AuthenticationRequired
from mcp_servers.client.transports import STREAMABLE_HTTP
from mcp_servers.client.transports.targets import HttpSpec
from mcp_servers.klavis.models import InstanceState, KlavisAccount, KlavisInstance
from workspaces import outbound
from workspaces.errors import InvalidInput
from workspaces.secret_memory import is_plain, remember_secret

if TYPE_CHECKING:
    from mcp_servers.models import McpServer


KLAVIS_REST: Final = "klavis_rest"
"""The name of the transport."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestSpec(HttpSpec):
    """A hosted server that is reached over its provider's API, which `endpoint` is."""

    server_url: str = field(repr=False)


def target_of(server: McpServer) -> HttpSpec:
    """What it takes to reach a hosted server, also while it waits for a sign-in: `connection_spec()` says that it does.

    Raises:
        AuthenticationRequired: nobody has signed in at the provider yet.
        InvalidInput: the provider is switched off here, or does not have the server any more.
        SecretUnreadable: what is stored cannot be decrypted.
    """
    instance = _instance_of(server)
    if instance is None:
        raise InvalidInput(_("Klavis no longer runs this server."))
    account = KlavisAccount.objects.for_workspace(server.workspace_id).first()
    if account is None or not account.is_active:
        raise InvalidInput(_("Klavis is switched off in this workspace."))
    waits = instance.state == InstanceState.WAITING_FOR_SIGN_IN
    if waits and not instance.server_url:
        raise AuthenticationRequired(
            _("Someone has to sign in to %(title)s at Klavis.") % {"title": instance.title}
        )
    if not (waits or instance.state == InstanceState.READY) or not instance.server_url:
        raise InvalidInput(instance.reason or _("Klavis is not ready to run this server."))
    url = reveal_url(instance)
    endpoint = outbound.parse_endpoint(url)
    if not instance.uses_rest:
        return HttpSpec(endpoint=endpoint, transport=STREAMABLE_HTTP)
    if not account.api_key:
        raise InvalidInput(_("Klavis needs its API key for this server."))
    key = account.api_key.reveal("calling a hosted MCP server over its provider's API")
    return RestSpec(
        endpoint=outbound.parse_endpoint(account.base_url),
        headers={"Authorization": f"Bearer {key}"},
        transport=KLAVIS_REST,
        server_url=url,
    )


def fingerprint_of(server: McpServer) -> list[object]:
    """Changes with what an open connection was made from; secrets count by their ciphertext."""
    instance = _instance_of(server)
    if instance is None:
        return []
    account = KlavisAccount.objects.for_workspace(server.workspace_id).first()
    sealed = [secret.sealed if secret else None for secret in (instance.server_url,)]
    if instance.uses_rest and account is not None:
        sealed += [account.base_url, account.api_key.sealed if account.api_key else None]
    return [instance.state, instance.uses_rest, *sealed]


def reveal_url(instance: KlavisInstance) -> str:
    """An instance's URL. From then on neither it nor any telling part of it is written anywhere."""
    url: str = instance.server_url.reveal("connecting to a hosted MCP server")
    for part in _telling_parts(url):
        remember_secret(part, workspace_id=instance.workspace_id)
    if instance.instance_id:
        instance.instance_id.reveal("keeping it out of logs")
    return url


def _telling_parts(url: str) -> list[str]:
    """The path with its query, and each long part of them: a library may write any of these."""
    address = url.partition("://")[2]
    target = address[address.find("/") :] if "/" in address else ""
    path, _, query = target.partition("?")
    values = [pair.partition("=")[2] for pair in query.split("&")]
    parts = [one for one in (*path.split("/"), *values) if len(one) >= 12 and not is_plain(one)]
    return [target, *parts] if len(target) > 12 else parts


def _instance_of(server: McpServer) -> KlavisInstance | None:
    return KlavisInstance.objects.for_workspace(server.workspace_id).filter(server=server).first()
