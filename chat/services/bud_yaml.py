"""One bud as a YAML file that people read and keep in a repository: names instead of ids, nothing secret."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import Enum, auto
from typing import Annotated, Any, Final
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field

from chat.artifacts.knowledge import knowledge_of
from chat.check_shapes import MOST_CHECKS, CheckShape
from chat.models import Bud, BudColour, BudVisibility, ModelProvider
from chat.services.buds import create_bud, offered_servers, update_bud
from chat.services.check_plans import change_plan, plan_of
from chat.services.checks import NOTHING_EXPECTED, checks_of, replace_checks
from chat.services.version_notes import FROM_FILE
from chat.values import ModelParameters, ToolChoice, ToolExposure, ToolProtocol
from workspaces.actors import Actor
from workspaces.errors import InvalidInput
from workspaces.models import User
from workspaces.roles import Permission, require
from workspaces.scoping import WorkspaceQuerySet
from workspaces.yaml_text import check_shape, read_yaml, write_yaml

LONGEST: Final = 500_000
MOST_FAULTS: Final = 20


class BudTools(BaseModel):
    """Which tools a bud uses, by the names of servers and `server.tool`."""

    model_config = ConfigDict(extra="forbid")

    all: bool = True
    servers: Annotated[list[str], Field(max_length=50)] = []
    only: Annotated[list[str], Field(max_length=1000)] | None = None
    without: Annotated[list[str], Field(max_length=1000)] = []
    choice: ToolChoice | None = None
    choice_every_step: bool = False
    exposure: ToolExposure = ToolExposure.ALL
    protocol: ToolProtocol = ToolProtocol.AUTO
    makes_files: bool = False


class BudFile(BaseModel):
    """A bud. Fields that are left out take their usual value."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=100)]
    slug: Annotated[str, Field(min_length=1, max_length=60)]
    description: Annotated[str, Field(max_length=300)] = ""
    icon: Annotated[str, Field(max_length=8)] = "🌱"
    colour: BudColour = BudColour.GREY
    instructions: Annotated[str, Field(max_length=50_000)] = ""
    provider: str | None = None
    model: Annotated[str, Field(max_length=200)] = ""
    is_model_fixed: bool = False
    parameters: ModelParameters = ModelParameters()
    starter_prompts: Annotated[list[str], Field(max_length=12)] = []
    tools: BudTools = BudTools()
    visibility: BudVisibility = BudVisibility.WORKSPACE
    members_may_edit: bool = False
    is_archived: bool = False
    checks: Annotated[list[CheckShape], Field(max_length=MOST_CHECKS)] | None = None
    """Left out: those that the bud has stay."""
    checks_before_saving: bool | None = None
    """Whether it takes a change only after they have passed with it. Left out: as it is."""


def write_bud(bud: Bud) -> str:
    """Give a bud as YAML. What it names and what no longer exists is left out."""
    return files_left_out([bud]) + write_yaml(bud_document(bud))


def files_left_out(buds: Iterable[Bud]) -> str:
    """Name the knowledge files of buds in comments: YAML does not hold them."""
    lines = [
        f"# Not in this file: {file.name}, a knowledge file of {bud.slug}\n"
        for bud in buds
        for file in knowledge_of(bud)
    ]
    return "".join(lines)


def bud_document(bud: Bud) -> dict[str, Any]:
    """Give a bud as plain values, in the order of the file."""
    config = bud.mcp
    names = {
        str(pk): name for pk, name in offered_servers(bud.workspace_id).values_list("pk", "name")
    }

    def named(tools: Iterable[str]) -> list[str]:
        parts = (tool.partition(".") for tool in tools)
        return [f"{names[server]}.{tool}" for server, _, tool in parts if server in names]

    whole = BudFile(
        name=bud.name,
        slug=bud.slug,
        description=bud.description,
        icon=bud.avatar,
        colour=BudColour(bud.colour),
        instructions=bud.system_prompt,
        provider=bud.provider.name if bud.provider else None,
        model=bud.model,
        is_model_fixed=bud.is_model_fixed,
        parameters=bud.model_parameters,
        starter_prompts=bud.starter_prompts,
        tools=BudTools(
            all=bud.takes_all_tools,
            servers=[names[str(pk)] for pk in config.servers if str(pk) in names],
            only=None if config.available_tools is None else named(config.available_tools),
            without=named(config.disabled_tools),
            choice=config.tool_choice,
            choice_every_step=config.tool_choice_every_step,
            exposure=config.tool_exposure,
            protocol=ToolProtocol(bud.tool_protocol),
            makes_files=bud.makes_artifacts,
        ),
        visibility=BudVisibility(bud.visibility),
        members_may_edit=bud.members_may_edit,
        is_archived=bud.is_archived,
    )
    document = whole.model_dump(mode="json", exclude_none=True)
    if checks := checks_of(bud):
        document["checks"] = [
            check.shape.model_dump(mode="json", exclude_defaults=True) for check in checks
        ]
        if plan_of(bud).before_saving:
            document["checks_before_saving"] = True
    return document


def read_bud(text: str) -> BudFile:
    """Read a bud's file. Nothing is stored, and names are not looked up.

    Raises:
        InvalidInput: with what is wrong at which field.
    """
    document = read_yaml(text, longest=LONGEST)
    return check_shape(BudFile, document, what=_("A bud is a mapping with name, slug and so on."))


def values_in(read: BudFile, workspace_id: UUID) -> tuple[dict[str, Any], UUID | None]:
    """Give the values that a file means, and its provider.

    Raises:
        InvalidInput: it names what is not in this workspace.
    """
    faults: dict[str, list[str]] = {}
    provider_id = None
    if read.provider is not None:
        rows = ModelProvider.objects.for_workspace(workspace_id).filter(name=read.provider)
        provider_id = rows.values_list("pk", flat=True).first()
        if provider_id is None:
            faults["provider"] = [
                _("There is no provider “%(provider)s” here.") % {"provider": read.provider[:100]}
            ]
    found = _Servers(workspace_id)
    tools = read.tools
    config = {
        "servers": [found.id_of(name, "tools.servers", faults) for name in tools.servers],
        "disabled_tools": [found.tool(name, "tools.without", faults) for name in tools.without],
        "tool_choice_every_step": tools.choice_every_step,
        "tool_exposure": tools.exposure.value,
    }
    if tools.only is not None:
        config["available_tools"] = [found.tool(name, "tools.only", faults) for name in tools.only]
    if tools.choice is not None:
        choice = tools.choice
        config["tool_choice"] = choice if isinstance(choice, str) else choice.model_dump()
    for place, check in enumerate(read.checks or ()):
        if not check.expects_something:
            faults[f"checks.{place}"] = [str(NOTHING_EXPECTED)]
    if faults:
        raise InvalidInput(fields=faults)
    values = {
        "name": read.name,
        "slug": read.slug,
        "description": read.description,
        "avatar": read.icon,
        "colour": read.colour.value,
        "system_prompt": read.instructions,
        "model": read.model,
        "is_model_fixed": read.is_model_fixed,
        "parameters": read.parameters.model_dump(exclude_none=True),
        "starter_prompts": read.starter_prompts,
        "mcp_config": config,
        "takes_all_tools": tools.all,
        "tool_protocol": tools.protocol.value,
        "makes_artifacts": tools.makes_files,
        "visibility": read.visibility.value,
        "members_may_edit": read.members_may_edit,
        "is_archived": read.is_archived,
    }
    return values, provider_id


class BudFileEffect(Enum):
    """What a file did."""

    MADE = auto()
    CHANGED = auto()
    NOTHING = auto()
    """The bud was as the file says."""


def apply_bud(
    text: str, *, workspace_id: UUID, person: User, actor: Actor, skips_checks: bool = False
) -> tuple[Bud, BudFileEffect]:
    """Make the bud that a file describes, or change the one of the same short name.

    Raises:
        InvalidInput: with what is wrong at which field; then nothing is changed.
        PermissionDenied: the actor may not make buds.
        ChecksNotPassed: the bud demands that its checks pass with the file first.
    """
    require(actor, Permission.MANAGE_BUDS, workspace_id=workspace_id)
    read = read_bud(text)
    bud = bud_of_person(read, workspace_id, person)
    if bud is not None and is_as_read(bud, read):
        return bud, BudFileEffect.NOTHING
    made = _put(bud, read, workspace_id, actor, skips_checks=skips_checks)
    return made, BudFileEffect.MADE if bud is None else BudFileEffect.CHANGED


def put_bud(read: BudFile, *, workspace_id: UUID, actor: Actor, skips_checks: bool = False) -> Bud:
    """Make the bud of the workspace that a document describes, or change the one of the same short name.

    Raises:
        InvalidInput: with what is wrong at which field.
        PermissionDenied: the actor may not make buds.
        ChecksNotPassed: the bud demands that its checks pass with the file first.
    """
    bud = shared_bud(read, workspace_id)
    if bud is not None and is_as_read(bud, read):
        return bud
    return _put(bud, read, workspace_id, actor, skips_checks=skips_checks)


def bud_of_person(read: BudFile, workspace_id: UUID, person: User) -> Bud | None:
    """Give the bud that somebody's file would change; None: it would make one."""
    rows = Bud.objects.for_workspace(workspace_id).usable_by(person.pk).filter(is_draft=False)
    return _named(rows, read)


def shared_bud(read: BudFile, workspace_id: UUID) -> Bud | None:
    """The same for the file of a workspace, which leaves a person's own buds alone."""
    return _named(Bud.objects.for_workspace(workspace_id).shared(), read)


def _named(rows: WorkspaceQuerySet[Bud], read: BudFile) -> Bud | None:
    return rows.filter(slug=read.slug).select_related("provider").first()


def is_as_read(bud: Bud, read: BudFile) -> bool:
    """Whether a file would change nothing."""
    now = BudFile.model_validate(bud_document(bud))
    if read.checks_before_saving in (None, bool(now.checks_before_saving)):
        now = now.model_copy(update={"checks_before_saving": read.checks_before_saving})
    if read.checks is None or (read.checks == [] and now.checks is None):
        now = now.model_copy(update={"checks": read.checks})
    return now == read


def _put(
    bud: Bud | None, read: BudFile, workspace_id: UUID, actor: Actor, *, skips_checks: bool
) -> Bud:
    with transaction.atomic():
        made = _put_values(bud, read, workspace_id, actor, skips_checks)
        if read.checks is not None:
            replace_checks(bud=made, shapes=read.checks, actor=actor)
        demands = read.checks_before_saving
        if demands is not None and demands is not plan_of(made).before_saving:
            change_plan(bud=made, actor=actor, before_saving=demands)
    return made


def _put_values(
    bud: Bud | None, read: BudFile, workspace_id: UUID, actor: Actor, skips_checks: bool
) -> Bud:
    values, provider_id = values_in(read, workspace_id)
    with names_in_file():
        if bud is None:
            return create_bud(
                workspace_id=workspace_id,
                actor=actor,
                values=values,
                provider_id=provider_id,
                note=FROM_FILE,
            )
        return update_bud(
            bud=bud,
            actor=actor,
            values=values,
            provider_id=provider_id,
            has_provider=True,
            note=FROM_FILE,
            shapes=read.checks,
            skips_checks=skips_checks,
        )


_IN_FILE: Final = {
    "avatar": "icon",
    "system_prompt": "instructions",
    "mcp_config": "tools",
    "takes_all_tools": "tools.all",
    "tool_protocol": "tools.protocol",
    "makes_artifacts": "tools.makes_files",
    "provider_id": "provider",
}
"""Fields that have another name in the file."""


@contextmanager
def names_in_file() -> Iterator[None]:
    """Tell faults at the fields as the file names them."""
    try:
        yield
    except InvalidInput as error:
        fields = {_IN_FILE.get(name, name): texts for name, texts in error.fields.items()}
        raise InvalidInput(fields=fields) from error


class _Servers:
    """The workspace's shared servers by name; an id means nothing, so none of another workspace can be named."""

    def __init__(self, workspace_id: UUID) -> None:
        rows = offered_servers(workspace_id).values_list("name", "pk")
        self._ids = {name: str(pk) for name, pk in rows}

    def id_of(self, name: str, field: str, faults: dict[str, list[str]]) -> str:
        found = self._ids.get(name, "")
        if not found and len(faults.setdefault(field, [])) < MOST_FAULTS:
            faults[field].append(
                _("There is no server “%(name)s” in this workspace.") % {"name": name[:100]}
            )
        return found

    def tool(self, name: str, field: str, faults: dict[str, list[str]]) -> str:
        # A server's name may have a dot in it, so the longest one that fits counts.
        fits = [one for one in self._ids if name.startswith(f"{one}.")]
        server = max(fits, key=len, default="")
        if not server:
            return self.id_of(name.partition(".")[0], field, faults)
        return f"{self._ids[server]}.{name[len(server) + 1 :]}"
