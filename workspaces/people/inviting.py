"""Inviting many people at once: addresses a line, or CSV, all of them or none."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from django.db import transaction
from django.urls import reverse
from django.utils.translation import gettext as _

from workspaces.actors import Actor, Role
from workspaces.delivery.mails import public_url
from workspaces.errors import Conflict, InvalidInput
from workspaces.holding import hold, hold_workspace
from workspaces.models import Invitation, Membership, Workspace
from workspaces.people.services import mail_invitation, make_invitation
from workspaces.roles import Permission, require
from workspaces.words.formats import whole
from workspaces.words.mail_addresses import is_mail_address, typed_address

MOST: Final = 100
"""In one go: each is mailed while the person waits."""
LONGEST: Final = 50_000
_HEADINGS: Final = frozenset(
    {"email", "e-mail", "email address", "e-mail address", "address", "mail", "emails", "e-mails"}
)
_ROLE: Final = "role"
_Columns = tuple[int, int | None]
_SEPARATORS: Final = ",;\t"
"""Of lists, of spreadsheets in most of Europe, and of cells that were copied out of one. Of as many, the first."""
_NAMED: Final = re.compile(r"[^<>]*<([^<>]+)>")
"""An address behind a name, as mail programs copy it."""
_WIDE_MARKS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitee:
    """Somebody to invite."""

    line: int
    """Where they stand in what was given, counted from 1."""
    email: str
    role: Role
    is_auditor: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InvitationResult:
    """What became of one invitation."""

    invitation: Invitation
    link: str = ""
    """For the inviter to pass on; only where no mail server is configured."""
    fault: str = ""
    """Why it was not mailed; then it is revoked."""


def read_list(content: bytes) -> str:
    """Give the text of a file as spreadsheets write it. An address has the same bytes in all Western encodings.

    Raises:
        InvalidInput: it is no text, at `file`.
    """
    try:
        if content.startswith(_WIDE_MARKS):
            return content.decode("utf-16")
        if b"\x00" in content:
            raise InvalidInput(
                fields={
                    "file": [
                        _("This is not a text file. Save the list as CSV, and choose that file.")
                    ]
                }
            )
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace")


def read_invitees(text: str, *, role: Role, workspace: Workspace | None = None) -> list[Invitee]:
    """Read addresses, one a line, with a role behind a comma, semicolon or tab if it is another.

    A line may hold several addresses instead, as mail programs write them. Each has the usual role.
    Of a table with headings, as other programs export it, the columns of addresses and roles are read.

    Args:
        text: the list.
        role: of those without one.
        workspace: where a line cannot be read, what speaks against inviting the others here is told at once, too.

    Raises:
        InvalidInput: with each faulty line under its number.
    """
    lines = text.splitlines()
    if len(text) > LONGEST:
        message = _("This list has %(lines)s lines. Give at most %(most)s people at once.") % {
            "lines": whole(len(lines)),
            "most": MOST,
        }
        raise InvalidInput(fields={"people": [message]})
    comma = max(_SEPARATORS, key=text.count)
    found: list[Invitee] = []
    faults: dict[str, list[str]] = {}
    reader = csv.reader(lines, delimiter=comma, strict=True)
    try:
        rows = list(reader)
    except csv.Error as error:
        # An open quotation mark is noticed at the end of the list; people look for the line that it is in.
        odd = (number for number, line in enumerate(lines, 1) if line.count('"') % 2)
        at = next(odd, reader.line_num)
        message = _("A quotation mark is missing or out of place.")
        raise InvalidInput(fields={f"line {at}": [message]}) from error
    known = {one.value: one for one in Role}
    columns: _Columns | None = None
    for line, row in enumerate(rows, 1):
        cells = [cell.strip() for cell in row]
        named = _columns_of(cells)
        columns = named or columns
        if named or not any(cells):
            continue
        if columns is not None:
            cells = [cells[at] if at is not None and at < len(cells) else "" for at in columns]
        elif all("@" in cell for cell in cells if cell):
            found += [Invitee(line=line, email=_address(cell), role=role) for cell in cells if cell]
            continue
        wanted = cells[1].lower() if len(cells) > 1 and cells[1] else role.value
        if len(cells) > 2 or wanted not in known:
            roles = ", ".join(known)
            message = _("Write an address, and a role if you like: %(roles)s.") % {"roles": roles}
            faults[f"line {line}"] = [message]
            continue
        found.append(Invitee(line=line, email=_address(cells[0]), role=known[wanted]))
    if faults:
        if workspace is not None:
            faults |= _faults_of(workspace, found)
        in_order = sorted(faults, key=lambda name: int(name.removeprefix("line ")))
        raise InvalidInput(fields={name: faults[name] for name in in_order})
    return found


def _address(cell: str) -> str:
    named = _NAMED.fullmatch(cell)
    return typed_address(named[1] if named else cell)


def _columns_of(cells: Sequence[str]) -> _Columns | None:
    """Where addresses and roles stand below a line of headings; None: it is none. A file may follow what was typed."""
    names = [cell.lower() for cell in cells]
    found = next((at for at, name in enumerate(names) if name in _HEADINGS), None)
    return None if found is None else (found, names.index(_ROLE) if _ROLE in names else None)


def invite_many(
    *, workspace: Workspace, people: Sequence[Invitee], actor: Actor
) -> list[tuple[Invitation, str]]:
    """Store invitations for all of them, or for nobody. Their mails are `mail_many`'s, once this is committed.

    Returns:
        Each invitation with its link's plain token.

    Raises:
        PermissionDenied: the actor may not invite, or not for such a role.
        InvalidInput: with each faulty line under its number.
    """
    require(actor, Permission.MANAGE_MEMBERS, workspace_id=workspace.pk)
    if not people:
        raise InvalidInput(fields={"people": [_("Give at least one address.")]})
    if len(people) > MOST:
        message = _("These are %(people)s people. Give at most %(most)s at once.") % {
            "people": whole(len(people)),
            "most": MOST,
        }
        raise InvalidInput(fields={"people": [message]})
    faults = _faults_of(workspace, people)
    if faults:
        raise InvalidInput(fields=faults)
    with transaction.atomic():
        return [
            make_invitation(
                workspace=workspace,
                email=one.email,
                role=one.role,
                is_auditor=one.is_auditor,
                actor=actor,
            )
            for one in people
        ]


def mail_many(made: Iterable[tuple[Invitation, str]], *, actor: Actor) -> list[InvitationResult]:
    """Send the links. One that cannot be sent is revoked."""
    found: list[InvitationResult] = []
    for invitation, token in made:
        link = public_url(reverse("workspaces:invitation", args=[token]))
        fault = ""
        if not invitation.is_link_shown:
            try:
                mail_invitation(invitation=invitation, link=link, actor=actor)
            except Conflict as error:
                fault = error.message
            link = ""
        found.append(InvitationResult(invitation=invitation, link=link, fault=fault))
    return found


def resend_invitation(*, invitation: Invitation, actor: Actor) -> tuple[Invitation, str]:
    """Offer the same again with a new link and a new expiry; the old link ends.

    Raises:
        PermissionDenied: the actor may not invite for this role.
        Conflict: it was accepted, or the person is a member.
    """
    require(actor, Permission.MANAGE_MEMBERS, workspace_id=invitation.workspace_id)
    with transaction.atomic():
        hold_workspace(invitation.workspace_id)
        hold(invitation, fields=["accepted_at"])
        if invitation.accepted_at is not None:
            raise Conflict(_("This invitation was accepted already."))
        return make_invitation(
            workspace=invitation.workspace,
            email=invitation.email,
            role=Role(invitation.role),
            is_auditor=invitation.is_auditor,
            actor=actor,
        )


def _faults_of(workspace: Workspace, people: Sequence[Invitee]) -> dict[str, list[str]]:
    emails = [one.email for one in people]
    rows = Membership.objects.also_suspended(workspace).filter(user__email__in=emails)
    members = {email.lower() for email in rows.values_list("user__email", flat=True)}
    faults: dict[str, list[str]] = {}
    seen: dict[str, int] = {}
    for one in people:
        fault = ""
        if not is_mail_address(one.email):
            fault = _("“%(email)s” is not an e-mail address.") % {"email": one.email[:100]}
        if one.email in members:
            fault = _("%(email)s is already a member.") % {"email": one.email}
        elif one.email in seen:
            fault = _("%(email)s is in line %(line)s already.") % {
                "email": one.email,
                "line": seen[one.email],
            }
        seen.setdefault(one.email, one.line)
        if fault:
            faults.setdefault(f"line {one.line}", []).append(fault)
    return faults
