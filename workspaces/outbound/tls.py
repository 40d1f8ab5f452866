"""A plain TLS connection, for protocols that are no HTTP: the same addresses, certificates checked."""

from __future__ import annotations

import asyncio
import os
import ssl
import tempfile
from collections.abc import Sequence
from pathlib import Path

import httpcore2
from django.utils.translation import gettext as _

from workspaces.errors import InvalidEndpoint
from workspaces.outbound.addresses import Network, is_allowed_address
from workspaces.outbound.backend import GuardedBackend
from workspaces.outbound.egress import NETWORK_REFUSED


def tls_context(
    *, ca_certificates: str = "", client_certificate: str = "", client_key: str = ""
) -> ssl.SSLContext:
    """Check the other side's certificate and name; show our own where one is given.

    Args:
        ca_certificates: PEM; where given, no other authority is trusted.

    Raises:
        InvalidEndpoint: the texts are no certificates, or the key is not the certificate's.
    """
    # The library takes ASCII alone. Only comments between certificates may hold anything else.
    authorities = ca_certificates.encode("ascii", "replace").decode("ascii")
    try:
        context = ssl.create_default_context(cadata=authorities or None)
    except (ssl.SSLError, ValueError) as error:
        raise InvalidEndpoint(_("The CA certificates are not PEM.")) from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if client_certificate:
        # The library reads files only; this one is ours alone, and gone before we go on.
        handle, name = tempfile.mkstemp()
        try:
            with os.fdopen(handle, "w") as file:
                file.write(f"{client_certificate}\n{client_key}\n")
            context.load_cert_chain(name, password=lambda: b"")
        except (ssl.SSLError, ValueError) as error:
            raise InvalidEndpoint(_("The client certificate and the key do not match.")) from error
        finally:
            Path(name).unlink(missing_ok=True)
    return context


async def connect_tls(
    host: str,
    port: int,
    *,
    context: ssl.SSLContext,
    networks: Sequence[Network],
    connect_seconds: float,
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the first allowed address that answers.

    Raises:
        PermissionError: none of the host's addresses is allowed.
        OSError: refused or unreachable.
        TimeoutError: no answer in time.
        ssl.SSLError: the certificate is not trusted, or not of this host.
    """
    async with asyncio.timeout(connect_seconds):
        try:
            found = await GuardedBackend.resolve(host, port, connect_seconds)
        except httpcore2.ConnectTimeout as error:
            raise TimeoutError from error
        except httpcore2.ConnectError as error:
            raise OSError("Trellis could not reach the server.") from error
        allowed = [address for address in found if is_allowed_address(address, networks=networks)]
        if found and not allowed:
            raise PermissionError(NETWORK_REFUSED)
        failure: OSError = OSError("Trellis could not reach the server.")
        for address in allowed[:4]:
            try:
                return await asyncio.open_connection(
                    str(address),
                    port,
                    ssl=context,
                    server_hostname=host,
                    ssl_shutdown_timeout=connect_seconds,
                )
            except ssl.SSLError:
                raise
            except OSError as error:
                failure = OSError("Trellis could not reach the server.")
                failure.__cause__ = error
        raise failure
