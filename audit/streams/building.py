"""From a stream's row to the sink it speaks to."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.translation import gettext as _

from audit.models import AuditStream
from audit.streams.sinks import Sink
from audit.streams.syslog import SyslogSink
from audit.streams.webhooks import WebhookSink
from workspaces import outbound
from workspaces.errors import InvalidEndpoint
from workspaces.secrets import Secret

_HOST_AND_PORT: Final = re.compile(
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\[\]:/@?#\s]+)(?::(?P<port>\d{1,5}))?"
)
_SYSLOG_PORT: Final = 6514  # RFC 5425, 4.1


def parse_target(kind: str, text: str) -> str:
    """The one spelling of where a stream goes.

    Raises:
        InvalidEndpoint: not a URL, or for syslog not host:port, that may be called.
    """
    if kind == AuditStream.Kind.SYSLOG:
        endpoint = _syslog_endpoint(text)
        host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
        return f"{host}:{endpoint.port}"
    return str(outbound.enter_endpoint(text))


def sink_of(stream: AuditStream) -> Sink:
    """The sink, with its secrets; the caller closes it.

    Raises:
        SecretUnreadable: a stored secret cannot be opened.
        InvalidEndpoint: the target may not be called.
    """
    if stream.kind == AuditStream.Kind.SYSLOG:
        endpoint = _syslog_endpoint(stream.target)
        return SyslogSink(
            host=endpoint.host,
            port=endpoint.port,
            context=outbound.tls_context(
                ca_certificates=stream.ca_certificates,
                client_certificate=stream.client_certificate,
                client_key=_plain(stream.client_key),
            ),
            hostname=urlsplit(settings.TRELLIS.public_origins[0]).hostname or "-",
        )
    headers = stream.headers.reveal_json("an audit stream's headers") if stream.headers else {}
    url = str(outbound.parse_endpoint(stream.target))
    if stream.kind == AuditStream.Kind.OTLP:
        from audit.streams.otlp import OtlpSink

        return OtlpSink(url=url, headers=headers)
    return WebhookSink(
        url=url, secret=_plain(stream.secret), headers=headers, stream=str(stream.pk)
    )


def _plain(secret: Secret | None) -> str:
    return secret.reveal("an audit stream") if secret else ""


def _syslog_endpoint(text: str) -> outbound.Endpoint:
    match = _HOST_AND_PORT.fullmatch(text.strip())
    if match is None:
        raise InvalidEndpoint(_("Use the form host:port, such as logs.example.org:6514."))
    return outbound.parse_endpoint(f"https://{match['host']}:{match['port'] or _SYSLOG_PORT}/")
