"""Inviting many people at once, sending again, and the same over REST."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.core import mail
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import override_settings
from django.utils.html import strip_tags

from tests.factories import Tenant, TwoTenants
from workspaces.actors import Role
from workspaces.errors import InvalidInput
from workspaces.models import Invitation
from workspaces.people.inviting import MOST, Invitee, read_invitees

pytestmark = pytest.mark.django_db


def page(tenant: Tenant) -> str:
    return f"/w/{tenant.workspace.slug}/people/invite/"


def invited(tenant: Tenant) -> list[tuple[str, str]]:
    rows = Invitation.objects.for_workspace(tenant.workspace).filter(revoked_at=None)
    return sorted(rows.values_list("email", "role"))


def test_a_list_names_addresses_and_other_roles() -> None:
    """REL-451: a line each, or CSV with a heading, also as spreadsheets write it, and mail programs copy addresses."""
    text = 'E-mail;Role\nAda@example.org\n\n"bob@example.org";admin\nEve L. <eve@example.org>\n'
    assert read_invitees(text, role=Role.MEMBER) == [
        Invitee(line=2, email="ada@example.org", role=Role.MEMBER),
        Invitee(line=4, email="bob@example.org", role=Role.ADMIN),
        Invitee(line=5, email="eve@example.org", role=Role.MEMBER),
    ]


def test_a_line_may_hold_several_addresses() -> None:
    """REL-451: as they are copied from the line of recipients of a mail."""
    text = "Ada L. <ada@example.org>, bob@example.org,\neve@example.org, admin"
    assert read_invitees(text, role=Role.MEMBER) == [
        Invitee(line=1, email="ada@example.org", role=Role.MEMBER),
        Invitee(line=1, email="bob@example.org", role=Role.MEMBER),
        Invitee(line=2, email="eve@example.org", role=Role.ADMIN),
    ]


def test_each_fault_of_a_line_is_named(tenant: Tenant) -> None:
    """REL-451: of several addresses in a line, not the last faulty one alone."""
    line = "ada@example, bob@example.org, bob@example.org"
    answer = tenant.client("admin").post(page(tenant), {"people": line, "role": "member"})
    text = answer.content.decode()
    assert "“ada@example” is not an e-mail address." in text
    assert "bob@example.org is in line 1 already." in text
    assert invited(tenant) == []


def test_many_are_invited_with_a_link_each(tenant: Tenant) -> None:
    """REL-451."""
    client = tenant.client("admin")
    answer = client.post(
        page(tenant), {"people": "ada@example.org\nbob@example.org, admin", "role": "member"}
    )
    assert answer.status_code in {200, 302}
    assert invited(tenant) == [("ada@example.org", "member"), ("bob@example.org", "admin")]
    links = [one.link for one in answer.context["links"]] if answer.status_code == 200 else []
    assert len(links) + len(mail.outbox) == 2
    assert len(set(links)) == len(links)


@pytest.mark.parametrize(
    "content",
    [
        "\ufeffE-Mail;Role\r\nada@example.org;admin\r\n".encode(),
        "Email address\tRole\nada@example.org\tadmin\n".encode("utf-16"),
        b"Email,Role\nada@example.org,admin\n",
    ],
    ids=["UTF-8 with a mark", "Unicode text", "plain"],
)
def test_a_file_is_read_as_spreadsheets_write_it(tenant: Tenant, content: bytes) -> None:
    """REL-1303: with their separators and encodings."""
    sent = {"file": SimpleUploadedFile("people.csv", content), "role": "member"}
    assert tenant.client("admin").post(page(tenant), sent).status_code in {200, 302}
    assert invited(tenant) == [("ada@example.org", "admin")]


def test_letters_of_an_older_encoding_are_no_reason_to_refuse_a_file(tenant: Tenant) -> None:
    """REL-1303: the line with them is told, as any other that is no address."""
    content = "ada@example.org\njos\u00e9\n".encode("cp1252")
    sent = {"file": SimpleUploadedFile("people.csv", content), "role": "member"}
    answer = tenant.client("admin").post(page(tenant), sent)
    assert answer.context["faults"] == {"line 2": ["“jos\u00e9” is not an e-mail address."]}
    assert answer.context["text"] == "ada@example.org\njos\u00e9\n"


def test_of_a_table_the_columns_that_its_headings_name_are_read(tenant: Tenant) -> None:
    """REL-1303: whatever else it has, and in whichever order."""
    text = "Name;Role;E-Mail;Team\nAda L.;admin;ada@example.org;1\nBob;;bob@example.org;2\n"
    assert read_invitees(text, role=Role.MEMBER) == [
        Invitee(line=2, email="ada@example.org", role=Role.ADMIN),
        Invitee(line=3, email="bob@example.org", role=Role.MEMBER),
    ]
    with pytest.raises(InvalidInput) as refused:
        read_invitees("Name,Email,Role\nAda,ada@example.org,king\n", role=Role.MEMBER)
    assert list(refused.value.fields) == ["line 2"]
    sent = {"people": "Name,Email\nAda\n", "role": "member"}
    answer = tenant.client("admin").post(page(tenant), sent)
    assert "line 2" in answer.context["faults"]


def test_a_file_does_not_replace_what_was_typed(tenant: Tenant) -> None:
    """REL-1303: both are invited."""
    sent = {
        "people": "bob@example.org",
        "file": SimpleUploadedFile("people.csv", b"Name,Email\nAda,ada@example.org\n"),
        "role": "member",
    }
    assert tenant.client("admin").post(page(tenant), sent).status_code in {200, 302}
    assert invited(tenant) == [("ada@example.org", "member"), ("bob@example.org", "member")]


def test_a_workbook_is_told_to_be_no_list(tenant: Tenant) -> None:
    """REL-1303: with what to do."""
    sent = {"file": SimpleUploadedFile("people.csv", b"PK\x03\x04\x00\x00"), "role": "member"}
    answer = tenant.client("admin").post(page(tenant), {**sent, "people": "bob@example.org"})
    assert "Save the list as CSV" in answer.context["faults"]["file"][0]
    assert answer.context["text"] == "bob@example.org"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("ada@example.org\nnonsense", "line 2"),
        ("ada@example.org\nADA@example.org", "line 2"),
        ("ada@example.org, king", "line 1"),
        ("ada@example.org, member, more", "line 1"),
        ("{member}", "line 1"),
        ("\n\n", "people"),
        ("\n".join(f"p{n}@example.org" for n in range(10_000)), "people"),
        ('"ada@example.org', "line 1"),
    ],
)
def test_one_faulty_line_invites_nobody(tenant: Tenant, text: str, place: str) -> None:
    """REL-451: each fault is told with its line, and what was typed stays."""
    text = text.format(member=tenant.member.email)
    answer = tenant.client("admin").post(page(tenant), {"people": text, "role": "member"})
    assert answer.status_code == 422
    assert place in answer.context["faults"]
    assert invited(tenant) == []
    assert answer.context["text"] == text


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("\u200bada@example.org", "ada@example.org"),
        ("ada@example.org\u200b", "ada@example.org"),
        ("ada@\u200bexample.org", "ada@example.org"),
        ("\ufeffada@example.org", "ada@example.org"),
        ("ada@exa\u00admple.org, admin", "ada@example.org"),
    ],
)
def test_marks_that_nobody_sees_are_no_part_of_an_address(
    tenant: Tenant, typed: str, stored: str
) -> None:
    """REL-2071: the person could not sign up with what was copied from a page or a mail."""
    answer = tenant.client("admin").post(page(tenant), {"people": typed, "role": "member"})
    assert answer.status_code in {200, 302}
    assert [email for email, _role in invited(tenant)] == [stored]


@pytest.mark.parametrize(
    "address",
    [
        f"{'a' * 300}@example.org",
        "ada@\ue000x.org",
        "ada@" + "\u00e4" * 63 + ".org",
        "ad\u0131@example.org",
    ],
    ids=["too long", "no letter", "too long once encoded", "a letter that is no ASCII"],
)
def test_addresses_that_no_mail_can_go_to_invite_nobody(tenant: Tenant, address: str) -> None:
    """REL-2071: they would fail while mails are sent, with the others' invitations stored and not mailed."""
    sent = {"people": f"bob@example.org\n{address}", "role": "member"}
    answer = tenant.client("admin").post(page(tenant), sent)
    assert answer.status_code == 422
    assert list(answer.context["faults"]) == ["line 2"]
    assert invited(tenant) == []


def test_more_than_the_limit_are_refused_by_number(tenant: Tenant) -> None:
    """REL-451."""
    head = {"X-Workspace": tenant.workspace.slug}
    people = [{"email": f"p{n}@example.org"} for n in range(MOST + 1)]
    answer = tenant.client("admin").post(
        "/api/invitations/",
        data=json.dumps({"people": people}),
        content_type="application/json",
        headers=head,
    )
    assert answer.status_code == 422
    assert invited(tenant) == []


def test_nobody_invites_above_themselves(tenant: Tenant) -> None:
    """SEC-353: a list with one role too high invites nobody, and a member opens no page."""
    text = "ada@example.org\nbob@example.org, owner"
    answer = tenant.client("admin").post(page(tenant), {"people": text, "role": "member"})
    assert answer.status_code == 422
    assert invited(tenant) == []
    assert tenant.client("member").get(page(tenant)).status_code == 403


def test_sending_again_ends_the_old_link(two_workspaces: TwoTenants) -> None:
    """REL-451, SEC-353, REL-1783: only of one's own workspace. The new link has a button that copies it, too."""
    tenant, other = two_workspaces.a, two_workspaces.b
    client = tenant.client("admin")
    client.post(page(tenant), {"people": "ada@example.org", "role": "member"})
    old = Invitation.objects.for_workspace(tenant.workspace).get()
    where = f"/w/{tenant.workspace.slug}/people/invitations/{old.pk}/resend/"
    answer = client.post(where)
    assert f'<code id="link-1">{answer.context["links"][0].link}</code>' in answer.content.decode()
    rows = Invitation.objects.for_workspace(tenant.workspace)
    assert rows.filter(revoked_at=None).exclude(pk=old.pk).count() == 1
    assert rows.get(pk=old.pk).revoked_at is not None
    assert 'data-copy="#link-1"' in answer.content.decode()
    assert f'action="{page(tenant)}"' in answer.content.decode()
    assert client.get(where).headers["Location"] == page(tenant)
    foreign = f"/w/{other.workspace.slug}/people/invitations/{old.pk}/resend/"
    assert other.client("admin").post(foreign).status_code == 404


@override_settings(EMAIL_BACKEND="django.core.mail.backends.locmem.EmailBackend")
def test_programs_invite_send_again_and_revoke(tenant: Tenant) -> None:
    """REL-451."""
    client, head = tenant.client("admin"), {"X-Workspace": tenant.workspace.slug}

    def post(path: str, body: Any = None) -> Any:
        return client.post(
            f"/api/invitations/{path}",
            data=json.dumps(body or {}),
            content_type="application/json",
            headers=head,
        )

    made = post("", {"people": [{"email": "Ada@example.org", "role": "admin"}]})
    assert made.status_code == 201
    [sent] = made.json()
    assert (sent["invitation"]["email"], sent["fault"]) == ("ada@example.org", "")
    pk = sent["invitation"]["id"]
    [again] = post(f"{pk}/resend/").json()
    assert again["invitation"]["id"] != pk
    gone = client.delete(f"/api/invitations/{again['invitation']['id']}/", headers=head)
    assert gone.status_code == 204
    assert invited(tenant) == []
    listed = client.get("/api/invitations/", headers=head).json()["results"]
    assert len(listed) == 2
    assert tenant.client("member").get("/api/invitations/", headers=head).status_code == 403


def test_a_list_that_cannot_be_read_names_its_line_or_its_length() -> None:
    """REL-796: a quotation mark that is never closed is looked for where it stands."""
    with pytest.raises(InvalidInput) as raised:
        read_invitees('a@x.org\n"b@x.org, admin\nc@x.org', role=Role.MEMBER)
    assert list(raised.value.fields) == ["line 2"]
    many = "".join(f"person{number}@example.org\n" for number in range(10_000))
    with pytest.raises(InvalidInput) as raised:
        read_invitees(many, role=Role.MEMBER)
    assert "10,000 lines" in raised.value.fields["people"][0]


def test_every_faulty_line_is_told_at_once(tenant: Tenant) -> None:
    """REL-817: also what is wrong with lines that can be read, so that nobody corrects a list line by line."""
    lines = [
        *("ada@example.org, admin", "not-an-address", "bob@example.org, emperor"),
        *("ada@example.org", tenant.member.email),
    ]
    answer = tenant.client("admin").post(
        page(tenant), {"people": "\n".join(lines), "role": "member"}
    )
    assert list(answer.context["faults"]) == ["line 2", "line 3", "line 4", "line 5"]
    assert invited(tenant) == []


def test_a_role_that_is_none_is_refused_at_its_field() -> None:
    """REL-451."""
    with pytest.raises(InvalidInput) as raised:
        read_invitees("ada@example.org, boss", role=Role.MEMBER)
    assert "member" in raised.value.fields["line 1"][0]


def test_the_page_has_one_name_wherever_it_is_linked(tenant: Tenant) -> None:
    """REL-3294: on its tab, on its button, in the admin and in its heading."""
    client = tenant.client("admin")
    link = re.compile(rf'<a\b[^>]*href="{page(tenant)}"[^>]*>(.*?)</a>', re.DOTALL)
    for place in (page(tenant), f"/w/{tenant.workspace.slug}/people/", "/admin/"):
        names = {
            strip_tags(one).strip() for one in link.findall(client.get(place).content.decode())
        }
        assert names == {"Invite people"}, place
    assert re.search(
        r"<h1[^>]*>\s*Invite people\s*</h1>", client.get(page(tenant)).content.decode()
    )
