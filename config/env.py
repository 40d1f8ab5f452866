"""The environment as one typed, frozen value, and every fault in it as one line.

Two modes exist. Without ``DATABASE_URL`` the product runs *embedded*: SQLite in the data folder, keys made once and kept
there. With ``DATABASE_URL`` it runs in *production mode*: whoever runs it gives the keys, and nothing is invented.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import sys
from dataclasses import dataclass, field
from email.utils import parseaddr
from functools import lru_cache
from importlib.util import find_spec
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from config.keys import Keys, load_or_create_keys

ROOT = Path(__file__).resolve().parent.parent
Network = IPv4Network | IPv6Network

SECRET_KEY_MIN_LENGTH = 32
KEY_SIZE_BYTES = 32
METRICS_TOKEN_MIN_LENGTH = 16
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
"""Names by which only this machine reaches itself."""
_SAMPLE_SECRET = re.compile(
    r"django-insecure|change.?me|example|sample|default|placeholder|your.?(secret|key)|insecure|password|s3cr3t",
    re.I,
)


@dataclass(frozen=True, slots=True)
class EncryptionKey:
    """One named 256-bit key for encrypted fields. The first of the list encrypts; all of them decrypt."""

    id: str
    material: bytes = field(repr=False)


def _split(value: object) -> object:
    """Read a comma-separated list; a list given in code passes through."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def _reject_weak(text: str) -> None:
    """Raise ValueError for a secret that somebody could guess."""
    if _SAMPLE_SECRET.search(text):
        raise ValueError(
            "looks like a sample value; make a new one with 'python3 manage.py generate_keys'"
        )
    if len(text) < SECRET_KEY_MIN_LENGTH or len(set(text)) < 10:
        raise ValueError(
            f"is too weak: at least {SECRET_KEY_MIN_LENGTH} random characters are needed"
        )


@lru_cache(maxsize=8)  # asked for with each entry of the log
def _decode_key(text: str) -> bytes:
    """Decode one base64 key (standard or URL-safe alphabet) and check that it is 256 random-looking bits."""
    try:
        raw = base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("is not base64") from None
    if len(raw) != KEY_SIZE_BYTES:
        raise ValueError(f"must be {KEY_SIZE_BYTES} bytes long, but has {len(raw)}")
    if len(set(raw)) < 10:
        raise ValueError("is not random")
    return raw


def normal_origin(text: str) -> str:
    """Give an origin as ``scheme://host[:port]`` in the form browsers send it, or raise ValueError."""
    parts = urlsplit(text.strip().lower())
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"'{text}' is not an origin such as https://chat.example.org")
    if (
        parts.path not in {"", "/"}
        or parts.query
        or parts.fragment
        or "@" in parts.netloc
        or "*" in parts.netloc
    ):
        raise ValueError(
            f"'{text}' must be scheme, host and port only, without path, user or wildcard"
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    default = {"http": 80, "https": 443}[parts.scheme]
    return f"{parts.scheme}://{host}" + (
        f":{parts.port}" if parts.port not in {None, default} else ""
    )


def _check_port(url: str) -> None:
    """Raise ValueError for a port that is none; the text repeats nothing of the address, which may hold a password."""
    try:
        _ = urlsplit(url).port
    except ValueError:
        raise ValueError(
            "has a port that is no number up to 65535; in a password, write / as %2F, # as %23, @ as %40 and : as %3A"
        ) from None


class Environment(BaseSettings):
    """Every setting of Trellis. Names in capitals are environment variables; an empty variable counts as absent."""

    model_config = SettingsConfigDict(
        frozen=True, extra="ignore", env_ignore_empty=True, case_sensitive=True
    )
    _mask_wrapped: ClassVar = True
    """Django's settings ask each value for this. Without an answer here pydantic looks for it everywhere, each time."""

    # Where it runs
    host: str = Field(
        "127.0.0.1",
        validation_alias="TRELLIS_HOST",
        description="Address `manage.py up` listens on.",
    )
    port: int = Field(
        8000,
        ge=1,
        le=65535,
        validation_alias="TRELLIS_PORT",
        description="Port `manage.py up` listens on.",
    )
    data_dir: Path = Field(
        ROOT / "data",
        validation_alias="TRELLIS_DATA_DIR",
        description="Folder for the embedded database, keys, outgoing mail and the scratch folders of stdio servers.",
    )
    epoch_file: Path | None = Field(
        None,
        validation_alias="TRELLIS_EPOCH_FILE",
        description="File outside the database by which a restored database is noticed. Absent: `epoch.json` in the data folder.",
    )
    mcp_servers_file: Path | None = Field(
        None,
        validation_alias="MCP_SERVERS_FILE",
        description="The platform's own MCP servers, as `mcpServers` JSON. Absent: `mcp-servers.json` here, in the data folder or in `~/.config/trellis`.",
    )
    catalogue_file: Path | None = Field(
        None,
        validation_alias="TRELLIS_CATALOGUE_FILE",
        description="Servers that the catalogue offers beside those that come with Trellis, and which of those it hides, as JSON.",
    )
    commit: str = Field(
        "",
        max_length=64,
        pattern=r"^[0-9a-f]*$",
        validation_alias="TRELLIS_COMMIT",
        description="Commit that this build was made from, which the platform's owner is shown. Absent: read from `.git`, if it is there.",
    )
    debug: bool = Field(
        False,
        validation_alias="TRELLIS_DEBUG",
        description="Django's debug pages. Refused in production mode.",
    )
    static_root: Path | None = Field(
        None,
        validation_alias="TRELLIS_STATIC_ROOT",
        description="Folder filled by `collectstatic`, with compressed copies. Absent: `manage.py up` fills `staticfiles` here.",
    )

    # Services
    database_url: str | None = Field(
        None,
        validation_alias="DATABASE_URL",
        repr=False,
        description="`postgres://user:password@host:5432/name`. Absent: SQLite in the data folder. Present: production mode.",
    )
    database_pool_size: int = Field(
        20,
        ge=2,
        le=500,
        validation_alias="TRELLIS_DATABASE_POOL_SIZE",
        description="Most PostgreSQL connections of one process.",
    )
    database_pooler: Literal["none", "transaction"] = Field(
        "none",
        validation_alias="TRELLIS_DATABASE_POOLER",
        description="`transaction` if PgBouncer or another pooler in transaction mode stands before PostgreSQL. Set the timeouts for the database role then (operations.md).",
    )
    row_security: bool = Field(
        False,
        validation_alias="TRELLIS_ROW_SECURITY",
        description="`on`: PostgreSQL itself hides the rows of other workspaces (row-level security), a second wall behind the checks of Trellis. Run `manage.py migrate` after each change (operations.md).",
    )
    redis_url: str | None = Field(
        None,
        validation_alias="REDIS_URL",
        repr=False,
        description="`redis://host:6379/0`. Absent: cache, nudges and background tasks live inside the one server process.",
    )

    artifact_storage: str | None = Field(
        None,
        validation_alias="TRELLIS_ARTIFACT_STORAGE",
        description="Dotted path of a Django storage class for files of conversations. Absent: the folder `artifacts` in the data folder.",
    )
    artifact_storage_options: Annotated[dict[str, Any], NoDecode] = Field(
        {},
        validation_alias="TRELLIS_ARTIFACT_STORAGE_OPTIONS",
        repr=False,
        description="Options of that class, as a JSON object.",
    )

    audit_report_storage: str | None = Field(
        None,
        validation_alias="TRELLIS_AUDIT_REPORT_STORAGE",
        description="Dotted path of a Django storage class for scheduled files of the audit log. Absent: the folder `audit-reports` in the data folder.",
    )
    audit_report_storage_options: Annotated[dict[str, Any], NoDecode] = Field(
        {},
        validation_alias="TRELLIS_AUDIT_REPORT_STORAGE_OPTIONS",
        repr=False,
        description="Options of that class, as a JSON object.",
    )

    # Keys
    secret_key: SecretStr | None = Field(
        None,
        validation_alias="SECRET_KEY",
        description="Signs sessions and links. Made once in the data folder when embedded; required in production mode.",
    )
    encryption_keys: Annotated[tuple[EncryptionKey, ...], NoDecode] = Field(
        (),
        validation_alias="TRELLIS_ENCRYPTION_KEYS",
        description="`id:base64,id:base64…`, 32 bytes each. The first encrypts stored secrets, the others still decrypt (rotation).",
    )
    audit_key: SecretStr | None = Field(
        None,
        validation_alias="TRELLIS_AUDIT_KEY",
        description="Base64 of 32 bytes. Keys the commitments to arguments and results in the audit log. Never rotate it.",
    )
    audit_signing_keys: Annotated[tuple[EncryptionKey, ...], NoDecode] = Field(
        (),
        validation_alias="TRELLIS_AUDIT_SIGNING_KEYS",
        repr=False,
        description="`id:base64,id:base64…`, 32 bytes each (Ed25519). The first signs the audit log's checkpoints; the one before it must follow once, to sign the change. Absent: one derived from `TRELLIS_AUDIT_KEY`.",
    )
    audit_checkpoint_file: Path | None = Field(
        None,
        validation_alias="TRELLIS_AUDIT_CHECKPOINT_FILE",
        description="File outside the database that holds the audit log's newest checkpoint. Absent: `audit-checkpoint.json` in the data folder.",
    )

    push_keys: Annotated[tuple[EncryptionKey, ...], NoDecode] = Field(
        (),
        validation_alias="TRELLIS_PUSH_KEYS",
        repr=False,
        description="`id:base64,id:base64…`, 32 bytes each (P-256, VAPID). The first signs for devices that are added from now on; keep the others as long as devices use them. Absent: one derived from `TRELLIS_AUDIT_KEY`.",
    )

    # Network
    public_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        validation_alias="TRELLIS_PUBLIC_ORIGINS",
        description="Full origins under which browsers reach Trellis, comma-separated. Decides CSRF, sockets and secure cookies. Links in mails use the first.",
    )
    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        validation_alias="ALLOWED_HOSTS",
        description="Host names that are answered. Absent: those of the public origins.",
    )
    trusted_proxies: Annotated[tuple[Network, ...], NoDecode] = Field(
        (),
        validation_alias="TRUSTED_PROXIES",
        description="Networks of reverse proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed.",
    )
    allowed_networks: Annotated[tuple[Network, ...], NoDecode] = Field(
        (),
        validation_alias="TRELLIS_ALLOWED_NETWORKS",
        description="Private networks (CIDR) that outgoing connections to MCP servers and models may reach.",
    )

    max_connections: int = Field(
        200,
        ge=1,
        le=10_000,
        validation_alias="MCP_MAX_CONNECTIONS",
        description="Most open connections to MCP servers of one process. Those idle for longest make room for new ones.",
    )
    max_connections_per_workspace: int = Field(
        50,
        ge=1,
        le=10_000,
        validation_alias="MCP_MAX_CONNECTIONS_PER_WORKSPACE",
        description="The same for one workspace.",
    )

    # Metrics
    metrics_token: SecretStr | None = Field(
        None,
        validation_alias="TRELLIS_METRICS_TOKEN",
        description="Who sends it as `Authorization: Bearer …` may read `/metrics`, at least 16 characters. Absent, and no networks: there is no such page.",
    )
    metrics_networks: Annotated[tuple[Network, ...], NoDecode] = Field(
        (),
        validation_alias="TRELLIS_METRICS_NETWORKS",
        description="Networks (CIDR) from which `/metrics` may be read without a token, such as `127.0.0.1/32`.",
    )

    # Traces
    otel_endpoint: str | None = Field(
        None,
        validation_alias="OTEL_EXPORTER_OTLP_ENDPOINT",
        description="OpenTelemetry collector (OTLP over HTTP) that traces are sent to, such as `http://collector:4318`. Absent: none are made. The standard's other variables (`OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_TRACES_SAMPLER` …) hold too.",
    )

    # Single sign-on
    sso_issuer: str | None = Field(
        None,
        max_length=200,
        validation_alias="TRELLIS_SSO_ISSUER",
        description="Address of your identity provider (OpenID Connect), such as `https://login.example.org/realms/main`. Absent: people sign in with a password (operations.md).",
    )
    sso_client_id: str = Field(
        "",
        max_length=191,
        validation_alias="TRELLIS_SSO_CLIENT_ID",
        description="What the provider calls Trellis. It lets people back to `<public origin>/accounts/sso/callback/`.",
    )
    sso_client_secret: SecretStr = Field(
        SecretStr(""),
        max_length=191,
        validation_alias="TRELLIS_SSO_CLIENT_SECRET",
        description="Secret of Trellis at the provider. Absent: a public client, with PKCE alone.",
    )
    sso_name: str = Field(
        "",
        max_length=40,
        validation_alias="TRELLIS_SSO_NAME",
        description="What people call the provider: the button says `Continue with …`. Absent: the host of the issuer.",
    )
    sso_domains: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        validation_alias="TRELLIS_SSO_DOMAINS",
        description="Mail domains whose people the provider knows, such as `example.org,example.com`. Nobody else can sign in with it.",
    )
    sso_workspace: str = Field(
        "",
        max_length=50,
        pattern=r"^[-a-zA-Z0-9_]*$",
        validation_alias="TRELLIS_SSO_WORKSPACE",
        description="Short name of the workspace that new people become members of. Absent: they need an invitation.",
    )
    sso_required: bool = Field(
        False,
        validation_alias="TRELLIS_SSO_REQUIRED",
        description="`on`: passwords and passkeys no longer let in people of these domains. Owners of the platform keep theirs, for the day on which the provider is away.",
    )

    # Mail
    email_host: str | None = Field(
        None,
        validation_alias="EMAIL_HOST",
        description="SMTP server. Absent: mails are written as files to `<data>/mail`.",
    )
    email_port: int = Field(
        587, ge=1, le=65535, validation_alias="EMAIL_PORT", description="SMTP port."
    )
    email_user: str = Field("", validation_alias="EMAIL_HOST_USER", description="SMTP user.")
    email_password: SecretStr = Field(
        SecretStr(""), validation_alias="EMAIL_HOST_PASSWORD", description="SMTP password."
    )
    email_security: Literal["starttls", "tls", "none"] = Field(
        "starttls",
        validation_alias="EMAIL_SECURITY",
        description="`starttls`, `tls` (from the first byte) or `none`.",
    )
    email_from: str = Field(
        "Trellis <trellis@localhost>",
        validation_alias="DEFAULT_FROM_EMAIL",
        description="Sender of the mails.",
    )

    # Model
    openai_api_key: SecretStr | None = Field(
        None,
        validation_alias="OPENAI_API_KEY",
        description="Key of the default model provider. Absent: see `OPENAI_BASE_URL`.",
    )
    klavis_api_key: SecretStr | None = Field(
        None,
        validation_alias="KLAVIS_API_KEY",
        description="Key for Klavis' hosted MCP servers. A workspace that switches Klavis on without a key of its own gets it; people never see it.",
    )
    openai_base_url: str | None = Field(
        None,
        validation_alias="OPENAI_BASE_URL",
        description="Any OpenAI-compatible endpoint. Absent, and no key: a local Ollama if it answers, else the demo model.",
    )
    openai_model: str | None = Field(
        None,
        validation_alias="OPENAI_MODEL",
        description="Model name for that provider. Absent, and no address: `gpt-6.1-terra` of OpenAI.",
    )
    openai_embedding_model: str | None = Field(
        None,
        validation_alias="OPENAI_EMBEDDING_MODEL",
        description="Embedding model of that provider, or of the local Ollama. With one, buds that use it also find passages of their knowledge files that say the same in other words; the whole text of these files goes to it. Absent: they search by words only.",
    )
    openai_most_at_once: int | None = Field(
        None,
        ge=1,
        le=1_000,
        validation_alias="OPENAI_MOST_AT_ONCE",
        description="Requests that this provider, or the local Ollama, gets at once from all workspaces together. Further ones wait their turn for up to a minute. Absent: no limit.",
    )
    openai_most_a_minute: int | None = Field(
        None,
        ge=1,
        le=100_000,
        validation_alias="OPENAI_MOST_A_MINUTE",
        description="Requests that it gets in a minute from all workspaces together. Absent: no limit.",
    )
    fallback_seconds: int = Field(
        30,
        ge=1,
        le=120,
        validation_alias="TRELLIS_FALLBACK_SECONDS",
        description="Seconds that a model provider may send nothing before its fallback answers instead. Twice as long for models that are known to think first. Without a fallback, Trellis waits for 2 minutes.",
    )
    ollama_url: str | None = Field(
        "http://127.0.0.1:11434/v1",
        validation_alias="TRELLIS_OLLAMA_URL",
        description="Where a local Ollama is looked for. `off`: it is not looked for.",
    )

    # Limits
    turn_max_steps: int = Field(
        12,
        ge=1,
        le=100,
        validation_alias="TRELLIS_TURN_MAX_STEPS",
        description="Most model requests in one turn.",
    )
    turn_max_seconds: int = Field(
        600,
        ge=10,
        le=86_400,
        validation_alias="TRELLIS_TURN_MAX_SECONDS",
        description="Most seconds of work in one turn.",
    )
    turn_max_tokens: int = Field(
        200_000,
        ge=1_000,
        validation_alias="TRELLIS_TURN_MAX_TOKENS",
        description="Most tokens (prompt and completion) in one turn.",
    )
    approval_ttl_seconds: int = Field(
        86_400,
        ge=60,
        validation_alias="TRELLIS_APPROVAL_TTL_SECONDS",
        description="Seconds until an unanswered approval runs out.",
    )
    tool_timeout_seconds: float = Field(
        60,
        gt=0,
        le=3_600,
        validation_alias="TRELLIS_TOOL_TIMEOUT_SECONDS",
        description="Seconds one tool call may take.",
    )
    drain_seconds: float = Field(
        8,
        ge=1,
        le=600,
        validation_alias="DRAIN_SECONDS",
        description="Seconds that a process takes at most to put its work down when it is told to end; keep it two below what your supervisor waits.",
    )
    health_check_seconds: int = Field(
        60,
        ge=5,
        validation_alias="TRELLIS_HEALTH_CHECK_SECONDS",
        description="Seconds between two checks of one MCP server.",
    )
    request_max_bytes: int = Field(
        1024 * 1024,
        ge=64 * 1024,
        validation_alias="TRELLIS_REQUEST_MAX_BYTES",
        description="Largest request body, in bytes.",
    )
    artifact_max_bytes: int = Field(
        10 * 1024 * 1024,
        ge=64 * 1024,
        le=100 * 1024 * 1024,
        validation_alias="TRELLIS_ARTIFACT_MAX_BYTES",
        description="Largest file of a conversation, in bytes.",
    )
    deleted_conversation_days: int = Field(
        30,
        ge=0,
        le=3650,
        validation_alias="TRELLIS_DELETED_CONVERSATION_DAYS",
        description="How long people can bring a deleted conversation back, in days; 0: it is erased at once.",
    )
    idle_conversation_days: int | None = Field(
        None,
        ge=1,
        le=36500,
        validation_alias="TRELLIS_IDLE_CONVERSATION_DAYS",
        description="Days after which a conversation is deleted in which nobody has written; pinned ones stay. Without it, conversations are kept until their owners delete them.",
    )
    temporary_conversation_hours: int = Field(
        24,
        ge=1,
        le=24 * 365,
        validation_alias="TRELLIS_TEMPORARY_CONVERSATION_HOURS",
        description="Hours after its last activity until a temporary chat is erased for good. TRELLIS_IDLE_CONVERSATION_DAYS holds for it too, if that is sooner.",
    )
    artifact_conversation_max_bytes: int = Field(
        100 * 1024 * 1024,
        ge=64 * 1024,
        validation_alias="TRELLIS_ARTIFACT_CONVERSATION_MAX_BYTES",
        description="All versions of all files of one conversation together, in bytes.",
    )
    backups_elsewhere: bool = Field(
        False,
        validation_alias="TRELLIS_BACKUPS_ELSEWHERE",
        description="1: something other than `manage.py backup` makes backups, such as snapshots of the database's host. The doctor then warns of none that is missing.",
    )
    mcp_client_documents: bool = Field(
        True,
        validation_alias="TRELLIS_MCP_CLIENT_DOCUMENTS",
        description="0: other MCP clients register themselves when they sign in, and Trellis reads no document of theirs on the internet. For networks that do not lead there.",
    )
    data_copy_days: int = Field(
        7,
        ge=1,
        le=90,
        validation_alias="TRELLIS_DATA_COPY_DAYS",
        description="Days that people can download a copy of their data, until Trellis erases it.",
    )
    data_copy_max_bytes: int = Field(
        20 * 1024**3,
        ge=1024 * 1024,
        validation_alias="TRELLIS_DATA_COPY_MAX_BYTES",
        description="Most bytes of files in one copy of a person's data. With more, they can ask for a copy without files.",
    )
    import_max_bytes: int = Field(
        100 * 1024 * 1024,
        ge=1024 * 1024,
        le=1024**3,
        validation_alias="TRELLIS_IMPORT_MAX_BYTES",
        description="Largest ZIP of a copy of somebody's data that can be imported, in bytes. Copies come in parts that are smaller.",
    )
    sockets_per_person: int = Field(
        50,
        ge=5,
        le=10_000,
        validation_alias="TRELLIS_SOCKETS_PER_PERSON",
        description="Open pages that one person may have live at one server process. Further ones say so.",
    )
    api_rate: str = Field(
        "600/min",
        validation_alias="TRELLIS_API_RATE",
        description="REST requests of one user or token, as number/period.",
    )

    # Logs
    log_format: Literal["console", "json"] = Field(
        "console",
        validation_alias="LOG_FORMAT",
        description="`console` for people, `json` for machines.",
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", validation_alias="LOG_LEVEL", description="Least severe message that is logged."
    )

    @property
    def is_production(self) -> bool:
        """Whether the person who runs this has to give every secret themselves."""
        return self.database_url is not None

    @property
    def is_https(self) -> bool:
        """Whether every way in is encrypted, so that cookies may be bound to it."""
        return all(origin.startswith("https://") for origin in self.public_origins)

    def is_open_to_others(self, host: str) -> bool:
        """Whether others than this machine reach a server that listens at this address, or a proxy before it."""
        names = [urlsplit(one).hostname for one in self.public_origins]
        return not LOOPBACK.issuperset([host, *names])

    @property
    def has_embedded_worker(self) -> bool:
        """Whether the server process runs background tasks itself."""
        return self.redis_url is None

    @property
    def audit_key_bytes(self) -> bytes:
        """The decoded audit key (32 bytes)."""
        if self.audit_key is None:  # the validator below leaves no such value
            raise RuntimeError("TRELLIS_AUDIT_KEY is not set")
        return _decode_key(self.audit_key.get_secret_value())

    @field_validator("public_origins", mode="before")
    @classmethod
    def _read_origins(cls, value: object) -> object:
        parts = _split(value)
        return (
            tuple(dict.fromkeys(normal_origin(str(part)) for part in parts))
            if isinstance(parts, tuple | list)
            else parts
        )

    @field_validator("sso_domains", mode="before")
    @classmethod
    def _read_domains(cls, value: object) -> object:
        parts = _split(value)
        if not isinstance(parts, tuple | list):
            return parts
        domains = [str(part).lower().removeprefix("@") for part in parts]
        for domain in domains:
            if not re.fullmatch(r"([a-z0-9-]+\.)+[a-z0-9-]+", domain):
                raise ValueError(f"'{domain}' is not a mail domain such as example.org")
        return tuple(dict.fromkeys(domains))

    @field_validator("allowed_hosts", mode="before")
    @classmethod
    def _read_hosts(cls, value: object) -> object:
        return _split(value)

    @field_validator("artifact_storage_options", "audit_report_storage_options", mode="before")
    @classmethod
    def _read_options(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value)
        except ValueError:
            raise ValueError("is not a JSON object") from None

    @field_validator("trusted_proxies", "allowed_networks", "metrics_networks", mode="before")
    @classmethod
    def _read_networks(cls, value: object) -> object:
        parts = _split(value)
        if not isinstance(parts, tuple | list):
            return parts
        networks = []
        for part in parts:
            try:
                networks.append(ip_network(str(part)))
            except ValueError:
                raise ValueError(f"'{part}' is not a network such as 10.1.0.0/16") from None
        return tuple(networks)

    @field_validator("encryption_keys", "audit_signing_keys", "push_keys", mode="before")
    @classmethod
    def _read_encryption_keys(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        keys: dict[str, EncryptionKey] = {}
        for position, item in enumerate(
            filter(None, (part.strip() for part in value.split(","))), start=1
        ):
            name, colon, text = item.partition(":")
            if not colon or not re.fullmatch(r"[A-Za-z0-9_.-]{1,32}", name):
                raise ValueError(f"key {position} is not written as id:base64")
            if name in keys:
                raise ValueError(f"the id '{name}' is used twice")
            try:
                keys[name] = EncryptionKey(name, _decode_key(text))
            except ValueError as error:
                raise ValueError(f"key {position} {error}") from None
        return tuple(keys.values())

    @field_validator("secret_key")
    @classmethod
    def _check_secret_key(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None:
            _reject_weak(value.get_secret_value())
        return value

    @field_validator("openai_api_key", "klavis_api_key")
    @classmethod
    def _check_api_key(cls, value: SecretStr | None) -> SecretStr | None:
        """What was copied from a page or a chat may hold a character that no request can carry, such as a long dash."""
        key = value.get_secret_value().strip() if value is not None else ""
        if not (key.isascii() and key.isprintable()):
            raise ValueError("holds a character that no key has: copy the key anew, alone")
        return SecretStr(key) if key else None

    @field_validator("metrics_token")
    @classmethod
    def _check_metrics_token(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and len(value.get_secret_value()) < METRICS_TOKEN_MIN_LENGTH:
            raise ValueError(f"must have at least {METRICS_TOKEN_MIN_LENGTH} characters")
        return value

    @field_validator("audit_key")
    @classmethod
    def _check_audit_key(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None:
            _decode_key(value.get_secret_value())
        return value

    @field_validator("database_url")
    @classmethod
    def _check_database_url(cls, value: str | None) -> str | None:
        if value is not None and not re.match(r"postgres(ql)?://", value):
            raise ValueError(
                "must begin with postgres:// (leave it out for SQLite in the data folder)"
            )
        if value is not None:
            _check_port(value)
        return value

    @field_validator("redis_url")
    @classmethod
    def _check_redis_url(cls, value: str | None) -> str | None:
        if value is not None and not re.match(r"(rediss?|unix)://", value):
            raise ValueError("must begin with redis://, rediss:// or unix://")
        if value is not None:
            _check_port(value)
        return value

    @field_validator("allowed_hosts")
    @classmethod
    def _check_hosts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for host in value:
            if not re.fullmatch(r"\*|\.?[\w.-]+|\[[0-9a-fA-F:.]+\]", host):
                raise ValueError(
                    f"'{host}' is not a host name; give it without scheme, port or path"
                )
        return value

    @field_validator("artifact_storage", "audit_report_storage")
    @classmethod
    def _check_storage(cls, value: str | None) -> str | None:
        if value is None:
            return None
        if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", value):
            raise ValueError(
                "must be the dotted path of a class, such as storages.backends.s3.S3Storage"
            )
        package = value.split(".", 1)[0]
        if find_spec(package) is None:
            raise ValueError(
                f"names a class of the package '{package}', which is not installed here"
            )
        return value

    @field_validator("epoch_file", "audit_checkpoint_file")
    @classmethod
    def _check_kept_file(cls, value: Path | None) -> Path | None:
        """Say now what would fail each time that the file is written: its folder can be neither written nor made."""
        if value is None:
            return None
        folder = value.absolute().parent
        while not folder.exists():
            folder = folder.parent
        if value.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
            raise ValueError(f"{value} cannot be written by the user who runs Trellis")
        return value

    @field_validator("sso_issuer")
    @classmethod
    def _check_issuer(cls, value: str | None) -> str | None:
        """The provider's answers are checked against it character by character, so it stays as it is written."""
        if value is None:
            return None
        parts = urlsplit(value)
        is_local = parts.scheme == "http" and parts.hostname in LOOPBACK
        if not parts.hostname or not (parts.scheme == "https" or is_local):
            raise ValueError("is not an https address such as https://login.example.org")
        if parts.query or parts.fragment or "@" in parts.netloc or "/.well-known/" in parts.path:
            raise ValueError(
                "must be the issuer's address alone, without user, query and /.well-known/ path"
            )
        return value

    @field_validator("openai_base_url", "ollama_url", "otel_endpoint")
    @classmethod
    def _check_url(cls, value: str | None) -> str | None:
        if value is None or value == "off":
            return None
        if urlsplit(value).scheme not in {"http", "https"} or not urlsplit(value).hostname:
            raise ValueError("is not an http(s) URL")
        return value.rstrip("/")

    @field_validator("email_from")
    @classmethod
    def _check_email_from(cls, value: str) -> str:
        if "@" not in parseaddr(value)[1] or "\n" in value:
            raise ValueError("is not an e-mail address")
        return value

    @field_validator("api_rate")
    @classmethod
    def _check_rate(cls, value: str) -> str:
        if not re.fullmatch(r"[1-9]\d*/(sec|min|hour|day)", value):
            raise ValueError("must be written as 600/min (sec, min, hour or day)")
        return value

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, values: Any) -> Any:
        """Make what the embedded default makes by itself: origins of the chosen port, keys of the data folder."""
        if not isinstance(values, dict) or values.get("DATABASE_URL"):
            return values
        completed = dict(values)
        if not completed.get("TRELLIS_PUBLIC_ORIGINS"):
            port = completed.get("TRELLIS_PORT", 8000)
            host = str(completed.get("TRELLIS_HOST", "127.0.0.1"))
            anywhere = {"0.0.0.0", "::", "127.0.0.1"}  # noqa: S104
            named = [] if host in anywhere else [f"[{host}]" if ":" in host else host]
            completed["TRELLIS_PUBLIC_ORIGINS"] = ",".join(
                f"http://{name}:{port}" for name in ["localhost", "127.0.0.1", "[::1]", *named]
            )
        missing = [
            name
            for name in ("SECRET_KEY", "TRELLIS_ENCRYPTION_KEYS", "TRELLIS_AUDIT_KEY")
            if not completed.get(name)
        ]
        if missing:
            keys: Keys = load_or_create_keys(
                Path(completed.get("TRELLIS_DATA_DIR") or ROOT / "data")
            )
            completed |= {name: keys[name] for name in missing}
            for name in ("TRELLIS_AUDIT_SIGNING_KEYS", "TRELLIS_PUSH_KEYS"):
                if "TRELLIS_AUDIT_KEY" in missing and not completed.get(name):
                    # Folders made before there was one have none; then it is derived.
                    completed[name] = keys.get(name, "")
        return completed

    @model_validator(mode="after")
    def _check_whole(self) -> Self:
        """State everything that is missing at once, not one thing per start."""
        required = {
            "SECRET_KEY": self.secret_key,
            "TRELLIS_ENCRYPTION_KEYS": self.encryption_keys,
            "TRELLIS_AUDIT_KEY": self.audit_key,
            "TRELLIS_PUBLIC_ORIGINS": self.public_origins,
        }
        faults = [
            f"{name} is required when DATABASE_URL is set"
            for name, value in required.items()
            if not value
        ]
        if self.row_security and self.database_url is None:
            faults.append(
                "TRELLIS_ROW_SECURITY needs PostgreSQL: set DATABASE_URL, or leave the setting off. SQLite has no row-level security"
            )
        if self.sso_issuer is None:
            needed = {
                "TRELLIS_SSO_CLIENT_ID": self.sso_client_id,
                "TRELLIS_SSO_CLIENT_SECRET": self.sso_client_secret.get_secret_value(),
                "TRELLIS_SSO_DOMAINS": self.sso_domains,
                "TRELLIS_SSO_WORKSPACE": self.sso_workspace,
                "TRELLIS_SSO_REQUIRED": self.sso_required,
            }
            faults += [
                f"{name} needs TRELLIS_SSO_ISSUER, the address of your identity provider"
                for name, value in needed.items()
                if value
            ]
        else:
            needed = {
                "TRELLIS_SSO_CLIENT_ID": self.sso_client_id,
                "TRELLIS_SSO_DOMAINS": self.sso_domains,
            }
            faults += [
                f"{name} is required when TRELLIS_SSO_ISSUER is set"
                for name, value in needed.items()
                if not value
            ]
        if self.is_production and self.debug:
            faults.append("TRELLIS_DEBUG must be off when DATABASE_URL is set")
        if faults:
            raise ValueError("; ".join(faults))
        if not self.allowed_hosts:
            hosts = dict.fromkeys(
                urlsplit(origin).netloc.rsplit(":", 1)[0] if "]" not in origin else "[::1]"
                for origin in self.public_origins
            )
            object.__setattr__(self, "allowed_hosts", tuple(hosts))
        return self


def describe_faults(error: ValidationError) -> str:
    """Put every fault in one line that names the variables and never repeats a value that may be secret."""
    parts = []
    for fault in error.errors(include_input=False, include_url=False, include_context=False):
        name = ".".join(str(step) for step in fault["loc"])
        text = fault["msg"].removeprefix("Value error, ")
        parts.append(f"{name}: {text}" if name else text)
    return "; ".join(parts)


def read_environment() -> Environment:
    """Read the environment, or print one line to stderr and leave with exit code 2."""
    try:
        return Environment()
    except ValidationError as error:
        print(f"Trellis cannot start. {describe_faults(error)}", file=sys.stderr)
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        print(
            f"Trellis cannot start. TRELLIS_DATA_DIR: {error.strerror}{where}",
            file=sys.stderr,
        )
    raise SystemExit(2)
