"""What a workspace's file may say. Fields that are left out take their usual value."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Final, Literal

from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field, JsonValue, PlainSerializer

from audit.models import AlertRule, AuditStream, ReportSchedule, SavedView
from audit.reviews.timing import USUAL_HOUR
from chat.models.spending import MOST_COST, MOST_TOKENS, USUAL_WARNING
from chat.services.bud_yaml import BudFile
from mcp_servers.client import transports
from mcp_servers.client.values import Effect, Protocol
from mcp_servers.models import ApprovalOverride, Approver, LogLevel, SamplingPolicy
from mcp_servers.models.rule_conditions import MOST_CONDITIONS, Condition
from mcp_servers.models.server_credentials import AccountUse, AuthType
from mcp_servers.registry.services.actions import MAX_RULES
from mcp_servers.registry.services.call_rules import MOST_NAMES, MOST_RULES
from workspaces.actors import Role
from workspaces.errors import InvalidInput
from workspaces.yaml_text import check_shape

_MOST: Final = 500
_MOST_OFFERS: Final = 5_000
"""Of one server and kind."""
Texts = Annotated[dict[str, str], Field(max_length=100)]
Line = Annotated[str, Field(max_length=200)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Price = Annotated[
    Decimal,
    Field(ge=0, max_digits=12, decimal_places=6),
    PlainSerializer(float, return_type=float, when_used="json"),
]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ToolSettings(_Part):
    """What administrators decide about one tool."""

    is_enabled: bool = True
    approval: ApprovalOverride = ApprovalOverride.INHERIT
    cache_seconds: int | None = None


Tools = Annotated[dict[str, ToolSettings], Field(max_length=_MOST_OFFERS)]
Addresses = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=2048)]], Field(max_length=_MOST_OFFERS)
]
Names = Annotated[list[Name], Field(max_length=_MOST_OFFERS)]


class OffersFile(_Part):
    """What administrators decide about all that one server offers. What is not named has its usual settings."""

    tools: Tools = {}
    resources_off: Addresses = []
    """Of resources and templates that are switched off."""
    prompts_off: Names = []


class ServerFile(_Part):
    """A server of the workspace. `auth`, `headers` and `env` are read and never written."""

    name: Name
    transport: Annotated[str, Field(max_length=20)] = transports.AUTO
    protocol: Protocol = Protocol.AUTO
    url: Annotated[str, Field(max_length=4096)] = ""
    program: Annotated[str, Field(max_length=60)] | None = None
    parameters: dict[str, JsonValue] = {}
    auth_type: AuthType = AuthType.NONE
    auth: Texts | None = None
    headers: Texts | None = None
    env: Texts | None = None
    account_use: AccountUse = AccountUse.USER
    oauth_scope: Annotated[str, Field(max_length=1000)] = ""
    connection_config: dict[str, JsonValue] = {}
    is_active: bool = True
    is_used_everywhere: bool = True
    trusts_annotations: bool = False
    allows_new_tools: bool = False
    answers_elicitation: bool = True
    uses_instructions: bool = False
    sampling: SamplingPolicy = SamplingPolicy.OFF
    sampling_daily_tokens: Annotated[int, Field(ge=0)] = 20_000
    sampling_provider: Line | None = None
    sampling_model: Line = ""
    roots: Annotated[list[dict[str, str]], Field(max_length=100)] = []
    log_level: LogLevel | Literal[""] = LogLevel.INFO
    tools: Tools = {}
    resources_off: Addresses = []
    prompts_off: Names = []


class ActionFile(_Part):
    """What happens when a tool of a hosted server runs an action by its name."""

    action: Name
    service: Line = ""
    category: Line = ""
    effect: Effect


class GivenServerFile(_Part):
    """A server that the platform or a provider gives. A file switches the platform's on and off, and adds none."""

    name: Name
    is_on: bool = True
    tools: Tools = {}
    resources_off: Addresses = []
    prompts_off: Names = []
    actions: Annotated[list[ActionFile], Field(max_length=MAX_RULES)] = []


def offers_in(server: ServerFile | GivenServerFile) -> OffersFile:
    """What a file decides about what a server offers."""
    return OffersFile(**{name: getattr(server, name) for name in OffersFile.model_fields})


class ModelFile(_Part):
    """What is known of one model. Prices are per million tokens."""

    context_tokens: Annotated[int, Field(ge=1, le=2_147_483_647)] | None = None
    prompt_price: Price | None = None
    cached_price: Price | None = None
    completion_price: Price | None = None
    sees_pictures: bool | None = None
    calls_tools: bool | None = None
    reasons: bool | None = None


class ProviderFile(_Part):
    """A provider of models. `api_key` is read and never written. One that is `shared` has no address and no key here."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    shared: bool = False
    base_url: Annotated[str, Field(max_length=500)] = ""
    api_key: Annotated[str, Field(max_length=10_000)] | None = None
    default_model: Line
    is_active: bool = True
    fallback: Line | None = None
    most_at_once: int | None = None
    most_a_minute: int | None = None
    embedding_model: Line = ""
    models: Annotated[dict[Name, ModelFile], Field(max_length=5_000)] = {}


Cost = Annotated[
    Decimal,
    Field(ge=0, le=MOST_COST, max_digits=14, decimal_places=6),
    PlainSerializer(float, return_type=float, when_used="json"),
]
Tokens = Annotated[int, Field(ge=0, le=MOST_TOKENS)]


class LimitFile(_Part):
    """A spending limit of a month. Without both there is no limit."""

    cost: Cost | None = None
    tokens: Tokens | None = None


class SpendingFile(_Part):
    """All spending limits of the workspace. Members whom the file does not name keep theirs."""

    workspace: LimitFile = LimitFile()
    member: LimitFile = LimitFile()
    """Of each member without a limit of their own."""
    warn_percent: Annotated[int, Field(ge=1, le=100)] = USUAL_WARNING
    time_zone: Annotated[str, Field(max_length=64)] = "UTC"
    members: Annotated[dict[Line, LimitFile | None], Field(max_length=5_000)] = {}
    """By e-mail address; null: as all members."""


class CallRuleFile(_Part):
    """A call rule. One that is new to the workspace is off at first."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    effect: Effect
    servers: Annotated[list[Line], Field(max_length=MOST_NAMES)]
    tools: Annotated[list[Line], Field(max_length=MOST_NAMES)]
    roles: Annotated[list[Role], Field(max_length=len(Role))] = []
    conditions: Annotated[list[Condition], Field(max_length=MOST_CONDITIONS)] = []
    approver: Approver = Approver.REQUESTER
    reason: Annotated[str, Field(max_length=500)] = ""
    is_enabled: bool = True


class AlertFile(_Part):
    """An alert rule."""

    name: Name
    condition: AlertRule.Condition
    threshold: int
    window_minutes: int = 15
    least_calls: Annotated[int, Field(ge=0, le=100_000)] = 10
    server_name: Line = ""
    tool_name: Annotated[str, Field(max_length=256)] = ""
    query: Annotated[str, Field(max_length=4_000)] = ""
    """In the log's filter language."""
    remind_hours: Annotated[int, Field(ge=0, le=24 * 30)] = 24
    tells_bell: bool = True
    emails: Annotated[list[Line], Field(max_length=100)] = []
    webhook_url: Annotated[str, Field(max_length=2048)] = ""
    is_active: bool = True


class StreamFile(_Part):
    """A stream of the log to another system; a new one begins with what comes from now on."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    kind: AuditStream.Kind
    target: Annotated[str, Field(max_length=2048)]
    headers: Texts | None = None
    ca_certificates: Annotated[str, Field(max_length=100_000)] = ""
    client_certificate: Annotated[str, Field(max_length=100_000)] = ""
    client_key: Annotated[str, Field(max_length=100_000)] | None = None
    is_paused: bool = False


class ViewFile(_Part):
    """A view of the log that everybody who may read it shares."""

    name: Annotated[str, Field(min_length=1, max_length=80)]
    page: SavedView.Page = SavedView.Page.LOG
    query: Annotated[str, Field(max_length=4_000)] = ""


class ScheduleFile(_Part):
    """A file of the log that is made again and again."""

    name: Annotated[str, Field(min_length=1, max_length=80)]
    query: Annotated[str, Field(max_length=4_000)] = ""
    format: Annotated[str, Field(max_length=10)] = "csv"
    cadence: ReportSchedule.Cadence = ReportSchedule.Cadence.WEEKLY
    hour: Annotated[int, Field(ge=0, le=23)] = USUAL_HOUR
    time_zone: Annotated[str, Field(max_length=64)] = "UTC"
    covers: ReportSchedule.Covers = ReportSchedule.Covers.CADENCE
    delivery: ReportSchedule.Delivery = ReportSchedule.Delivery.MAIL
    recipients: Annotated[list[Line], Field(max_length=200)] = []
    """E-mail addresses of members."""
    is_active: bool = True


class WorkspaceFile(_Part):
    """Everything; each part may be missing."""

    rules: dict[str, bool] = {}
    providers: Annotated[list[ProviderFile], Field(max_length=_MOST)] = []
    spending: SpendingFile | None = None
    servers: Annotated[list[ServerFile], Field(max_length=_MOST)] = []
    given_servers: Annotated[list[GivenServerFile], Field(max_length=_MOST)] = []
    call_rules: Annotated[list[CallRuleFile], Field(max_length=MOST_RULES)] = []
    buds: Annotated[list[BudFile], Field(max_length=_MOST)] = []
    alerts: Annotated[list[AlertFile], Field(max_length=_MOST)] = []
    streams: Annotated[list[StreamFile], Field(max_length=_MOST)] = []
    views: Annotated[list[ViewFile], Field(max_length=_MOST)] = []
    schedules: Annotated[list[ScheduleFile], Field(max_length=_MOST)] = []


_NAMED: Final = (
    *("providers", "servers", "given_servers", "call_rules", "buds", "alerts", "streams"),
    "schedules",
)
"""Parts of which each has a name of its own."""


def read_document(document: object) -> WorkspaceFile:
    """Check a document of plain values.

    Raises:
        InvalidInput: with what is wrong at which field.
    """
    what = _(
        "The file names no sections, such as servers: and buds:. Download one to see its form."
    )
    read = check_shape(WorkspaceFile, document, what=what)
    faults: dict[str, list[str]] = {}
    for part in _NAMED:
        seen: set[str] = set()
        for row in getattr(read, part):
            key = row.slug if part == "buds" else row.name
            if key in seen:
                faults[f"{part}.{key}"] = [_("The file names this twice.")]
            seen.add(key)
    if faults:
        raise InvalidInput(fields=faults)
    return read
