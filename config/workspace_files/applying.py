"""A file put into force: whole or not at all, and a second time without effect."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from django.db import transaction
from django.utils.translation import gettext as _

from chat.models import CheckRun
from chat.services.bud_yaml import BudFile, is_as_read, put_bud, shared_bud
from chat.services.check_demands import ChecksNotPassed, demands_checks, shapes_of
from chat.services.checks_before_saving import check_read
from chat.tools.missing_tools import silent_servers
from config.workspace_files.call_rules import put_call_rule
from config.workspace_files.exporting import write_workspace
from config.workspace_files.given_servers import put_given_server
from config.workspace_files.log import (
    alert_files,
    put_alert,
    put_schedule,
    put_stream,
    put_view,
    schedule_files,
    stream_files,
    view_files,
)
from config.workspace_files.offers import put_offers
from config.workspace_files.providers import note_untested_keys, put_providers, try_new_keys
from config.workspace_files.secrets import Place, changed_secrets, secrets_in_force
from config.workspace_files.servers import own_servers, put_server, server_files
from config.workspace_files.shapes import WorkspaceFile, offers_in, read_document
from config.workspace_files.spending import put_spending
from config.workspace_files.target import WorkspaceTarget, faults_at
from mcp_servers.models import McpServer
from mcp_servers.registry.services import delete_server, refresh_tools, set_workspace_rule
from workspaces.errors import Conflict, DomainError, InvalidInput
from workspaces.models import User
from workspaces.roles import Permission, require

_NO_PROVIDER: Final = {"sampling_provider": None}


@dataclass(frozen=True, slots=True)
class AppliedChanges:
    """What a file has changed, or would change."""

    diff: str
    """Of the workspace's own file, before and after; empty: nothing."""
    secrets: tuple[str, ...]
    """Places in the file whose secret is new, another or gone. The diff shows none of them."""
    notes: tuple[str, ...]

    @property
    def is_none(self) -> bool:
        """Whether all was as the file says."""
        return not (self.diff or self.secrets)


class ChecksMissing(InvalidInput):
    """Buds in the file demand checks that have not passed with it: it may be applied all the same, if somebody insists."""


def apply_file(
    target: WorkspaceTarget,
    document: object,
    *,
    is_dry_run: bool = False,
    tests_keys: bool = True,
    skips_checks: bool = False,
) -> AppliedChanges:
    """Make the workspace as the file says. What the file does not name stays.

    New servers are added and looked at first, since buds and approval settings name their tools. If anything is wrong
    with the rest, they are removed again. Servers with other secrets are looked at in the end. New keys of providers are tested before anything is changed, also in a dry run.

    Args:
        tests_keys: False: new keys are stored without a test, as while a provider is down.
        skips_checks: apply it though checks that buds demand have not passed; the log says so.

    Raises:
        InvalidInput: with what is wrong at which field; then nothing is changed.
        ChecksMissing: all that is wrong with the buds is that demanded checks have not passed.
        KeysUntested: all that is wrong is that new keys could not be tested.
        PermissionDenied: the actor does not own the workspace.
    """
    require(target.actor, Permission.MANAGE_WORKSPACE, workspace_id=target.pk)
    wanted = read_document(document)
    works_at: dict[str, str] = {}
    if tests_keys:
        works_at = try_new_keys(target, wanted.providers)
    else:
        note_untested_keys(target, wanted.providers)
    before = _Written.of(target)
    if is_dry_run:
        with transaction.atomic():
            _apply(target, wanted, _add_servers(target, wanted), works_at, skips_checks)
            after = _Written.of(target)
            transaction.set_rollback(True)
        return before.changes_to(after, target)
    with transaction.atomic():
        added = _add_servers(target, wanted)
    for server in added:
        _look_at(target, server)
    try:
        with transaction.atomic():
            _apply(target, wanted, added, works_at, skips_checks)
    except BaseException:
        for server in added:
            delete_server(server=server, actor=target.actor)
        raise
    after = _Written.of(target)
    changed = changed_secrets(before.secrets, after.secrets)
    names = [name for part, name, _what in changed if part == "servers"]
    rows = own_servers(target.pk).filter(is_active=True, name__in=names)
    for server in rows.exclude(pk__in=[one.pk for one in added]):
        _look_at(target, server)  # whoever changes a key wants to know whether it works
    return before.changes_to(after, target)


@dataclass(frozen=True, slots=True)
class _Written:
    """A workspace as its file, and beside it what the file does not show."""

    text: str
    secrets: Mapping[Place, str]

    @classmethod
    def of(cls, target: WorkspaceTarget) -> _Written:
        return cls(write_workspace(target), secrets_in_force(target))

    def changes_to(self, after: _Written, target: WorkspaceTarget) -> AppliedChanges:
        lines = difflib.unified_diff(
            *(self.text.splitlines(), after.text.splitlines()),
            *("now", "as the file says"),
            lineterm="",
            n=2,
        )
        return AppliedChanges(
            diff="\n".join(lines),
            secrets=tuple(map(".".join, changed_secrets(self.secrets, after.secrets))),
            notes=tuple(target.notes),
        )


def _add_servers(target: WorkspaceTarget, wanted: WorkspaceFile) -> list[McpServer]:
    """Add those that are new. Providers of the same file come later, so nothing is said of them yet."""
    known = set(own_servers(target.pk).values_list("name", flat=True))
    new = [one for one in wanted.servers if one.name not in known]
    return [put_server(target, one.model_copy(update=_NO_PROVIDER), {}) for one in new]


def _look_at(target: WorkspaceTarget, server: McpServer) -> None:
    try:
        report = refresh_tools(server=server, actor=target.actor)
    except DomainError as error:
        why = error.message
    else:
        if report.ok:
            return
        why = " ".join(filter(None, (report.message, report.advice)))
    words = {"name": server.name, "why": why}
    target.notes.append(_("“%(name)s” could not be looked at: %(why)s") % words)


def _apply(
    target: WorkspaceTarget,
    wanted: WorkspaceFile,
    added: Collection[McpServer],
    works_at: Mapping[str, str],
    skips_checks: bool,
) -> None:
    """Everything in one transaction of the caller's."""
    for name, is_on in wanted.rules.items():
        with faults_at(f"rules.{name}", {"rule": ""}):
            if getattr(target.workspace, name, None) is not is_on:
                set_workspace_rule(
                    workspace=target.workspace, rule=name, is_on=is_on, actor=target.actor
                )
    if wanted.spending is not None:
        put_spending(target, wanted.spending)
    put_providers(target, wanted.providers, works_at)
    servers = {one.name: one for one in server_files(target)}
    new = {row.name: row for row in added}
    for server in wanted.servers:
        is_whole = server.name in new and server.sampling_provider is None
        row = new[server.name] if is_whole else put_server(target, server, servers)
        put_offers(target, row, offers_in(server), f"servers.{server.name}")
    for given in wanted.given_servers:
        put_given_server(target, given)
    for rule in wanted.call_rules:
        put_call_rule(target, rule)
    _put_buds(target, wanted.buds, skips_checks=skips_checks)
    _note_unknown_tools(target, wanted)
    alerts = {one.name: one for one in reversed(alert_files(target))}
    for alert in wanted.alerts:
        put_alert(target, alert, alerts)
    streams = {one.name: one for one in reversed(stream_files(target))}
    for stream in wanted.streams:
        put_stream(target, stream, streams)
    views = {(one.page.value, one.name): one for one in view_files(target)}
    for view in wanted.views:
        put_view(target, view, views)
    schedules = {one.name: one for one in reversed(schedule_files(target))}
    for schedule in wanted.schedules:
        put_schedule(target, schedule, schedules)


def _put_buds(target: WorkspaceTarget, buds: Iterable[BudFile], *, skips_checks: bool) -> None:
    missing: dict[str, list[str]] = {}
    for bud in buds:
        with faults_at(f"buds.{bud.slug}"):
            try:
                put_bud(bud, workspace_id=target.pk, actor=target.actor, skips_checks=skips_checks)
            except ChecksNotPassed as error:
                missing[f"buds.{bud.slug}"] = [error.message]
    if missing:
        raise ChecksMissing(fields=missing)


def check_buds(target: WorkspaceTarget, document: object, *, person: User) -> list[CheckRun]:
    """Run the checks that buds demand before they take what a file says of them. The notes name buds that are busy with others.

    Raises:
        InvalidInput: with what is wrong at which field, or no bud demands checks for this file.
        PermissionDenied: the actor does not own the workspace.
    """
    require(target.actor, Permission.MANAGE_WORKSPACE, workspace_id=target.pk)
    with transaction.atomic():  # of all buds, or of none
        begun = list(_begin_checks(target, read_document(document).buds, person))
    if not begun and not target.notes:
        raise InvalidInput(_("No bud demands that checks pass with this file. Apply it."))
    return begun


def _begin_checks(
    target: WorkspaceTarget, buds: Iterable[BudFile], person: User
) -> Iterator[CheckRun]:
    for read in buds:
        bud = shared_bud(read, target.pk)
        if (
            bud is None
            or is_as_read(bud, read)
            or not demands_checks(bud, read.checks or shapes_of(bud))
        ):
            continue
        with faults_at(f"buds.{read.slug}"):
            try:
                run = check_read(read, bud=bud, person=person, actor=target.actor)
            except Conflict as error:
                target.notes.append(f"{bud.name}: {error.message}")
                continue
        yield run


def _note_unknown_tools(target: WorkspaceTarget, wanted: WorkspaceFile) -> None:
    """Say of which servers nobody knows the tools that buds name: of new ones in a dry run, or of those behind a sign-in."""
    if not wanted.buds:
        return
    named = [name for bud in wanted.buds for name in (*(bud.tools.only or ()), *bud.tools.without)]
    for server in sorted(silent_servers(target.pk)):
        if any(name.startswith(f"{server}.") for name in named):
            target.notes.append(
                _(
                    "“%(name)s” has not told its tools yet, so what buds name of them is not checked."
                )
                % {"name": server}
            )
