"""How a server is connected to and called: the typed value behind a JSON column. Pure."""

from __future__ import annotations

from typing import Self

import pydantic
from pydantic import BaseModel, ConfigDict, Field

from mcp_servers.client.transports.targets import LONGEST_CONNECT_SECONDS
from workspaces.errors import InvalidInput


class ConnectionConfig(BaseModel):
    """Times and limits of one server; every field has a default, so that `{}` is a whole configuration."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    connect_seconds: float = Field(15.0, ge=1, le=LONGEST_CONNECT_SECONDS)
    call_seconds: float | None = Field(None, ge=1, le=3600)
    """For one call. None: the platform's setting."""
    hard_call_seconds: float | None = Field(None, ge=1, le=24 * 3600)
    """For one call in all, however much progress it tells of. None: ten times the limit for a call."""
    queue_seconds: float = Field(30.0, ge=0, le=300)
    """How long a call waits for a free slot."""
    idle_seconds: float = Field(300.0, ge=10, le=86400)
    """Time without calls after which the connection is closed."""
    max_concurrent_calls: int = Field(8, ge=1, le=64)
    max_queued_calls: int = Field(64, ge=0, le=1000)
    """How many calls may wait for a slot; further ones are refused as busy."""
    max_attempts: int = Field(5, ge=1, le=100)
    """How often in a row a connection is tried by itself, before a health check or a person has to."""
    result_bytes: int = Field(1024 * 1024, ge=1024, le=10 * 1024 * 1024)
    """How much of a result is kept; what is longer is cut."""

    calls_per_day: int | None = Field(None, ge=1, le=10_000_000)
    """Calls of its tools on one day (UTC), by everybody of the workspace together. None: no limit."""

    @classmethod
    def read(cls, value: object) -> Self:
        """Check a stored or submitted value.

        Raises:
            InvalidInput: names the fields that are wrong.
        """
        try:
            return cls.model_validate(value)
        except pydantic.ValidationError as error:
            raise InvalidInput(fields={"connection_config": describe_errors(error)}) from error

    def as_json(self) -> dict[str, object]:
        """What is stored: only what differs from the defaults."""
        return self.model_dump(mode="json", exclude_defaults=True)


def describe_errors(error: pydantic.ValidationError) -> list[str]:
    """A sentence for each fault, without repeating the value."""
    return [
        f"{'.'.join(str(part) for part in fault['loc']) or 'value'}: {fault['msg']}."
        for fault in error.errors()
    ]
