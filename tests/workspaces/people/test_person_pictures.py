"""The pictures that people give of themselves."""

from __future__ import annotations

import io

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from PIL import Image

from audit.models import AuditEntry
from tests import documents
from tests.factories import Tenant, TwoTenants
from tests.row_actions import act, notices
from workspaces.errors import InvalidInput
from workspaces.models import Membership, PersonPicture
from workspaces.people import pictures
from workspaces.people.pictures import SIDE, keep_picture, own_address

pytestmark = pytest.mark.django_db
PROFILE = "/account/"
PICTURE = "/account/picture/"


def a_file(content: bytes | None = None) -> SimpleUploadedFile:
    return SimpleUploadedFile("me.png", content or documents.png(600, 300), "image/png")


def pointed_at(client: Client, address: str) -> Image.Image:
    answer = client.get(address)
    assert (answer.status_code, answer["Content-Type"]) == (200, "image/jpeg")
    assert "immutable" in answer["Cache-Control"]
    return Image.open(io.BytesIO(answer.content))


def test_a_person_gives_changes_and_takes_back_their_picture(tenant: Tenant) -> None:
    """REL-1229: it is cut to a square and drawn anew; its address changes with it, and every page shows it."""
    client = tenant.client("member")
    assert "Remove the picture" not in client.get(PROFILE).content.decode()
    assert client.get(PICTURE).status_code == 404
    assert client.post(PICTURE, {"picture": a_file()}).status_code == 302
    tenant.member.refresh_from_db()
    first = own_address(tenant.member)
    assert pointed_at(client, first).size == (SIDE, SIDE)
    page = client.get(PROFILE).content.decode()
    assert page.count(f'src="{first}"') == 2, "at the head of the page, and beside the field"
    other = io.BytesIO()
    Image.new("RGB", (20, 90), "teal").save(other, "PNG")
    client.post(PICTURE, {"picture": a_file(other.getvalue())})
    tenant.member.refresh_from_db()
    assert own_address(tenant.member) not in ("", first)
    assert client.post(PICTURE, {"remove": "1"}).status_code == 302
    assert client.get(PICTURE).status_code == 404
    assert not PersonPicture.objects.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "cannot be shown"),
        (documents.png_that_claims(50_000), "more than 25 million pixels"),
        (documents.png(4, 4)[:-20], "damaged"),
    ],
    ids=["SVG", "too many points", "damaged"],
)
def test_what_is_no_picture_is_refused_at_its_field(
    tenant: Tenant, content: bytes, message: str
) -> None:
    """REL-1230: nothing is changed, and it says what can be chosen."""
    client = tenant.client("member")
    refused = client.post(PICTURE, {"picture": a_file(content)})
    assert refused.status_code == 422
    assert message in refused.content.decode()
    assert not PersonPicture.objects.exists()


def test_a_picture_that_is_too_large_or_missing_is_refused(
    tenant: Tenant,
) -> None:
    """REL-1230: before it is decoded, on the page and over REST."""
    client = tenant.client("member", headers={"X-Workspace": tenant.workspace.slug})
    assert "Choose a picture first." in client.post(PICTURE, {}).content.decode()
    with pytest.raises(InvalidInput, match="larger than 10 MB"):
        keep_picture(user=tenant.member, content=b"x" * (pictures.MOST_BYTES + 1))
    large = {"picture": a_file(b"x" * (pictures.MOST_BYTES + 1))}
    assert client.post("/api/profile/picture/", large).status_code == 413


def test_pictures_are_given_and_taken_back_over_rest(tenant: Tenant) -> None:
    """REL-1229: the profile says where it is."""
    client = tenant.client("member", headers={"X-Workspace": tenant.workspace.slug})
    given = client.post("/api/profile/picture/", {"picture": a_file()})
    assert given.status_code == 200, given.content
    assert pointed_at(client, given.json()["picture"]).size == (SIDE, SIDE)
    assert client.get("/api/profile/").json()["picture"] == given.json()["picture"]
    assert client.delete("/api/profile/picture/").json()["picture"] == ""
    refused = client.post("/api/profile/picture/", {"picture": a_file(b"none")})
    assert (refused.status_code, refused.json()["errors"][0]["attr"]) == (422, "picture")


def test_people_of_ones_workspaces_see_it_and_nobody_else(two_workspaces: TwoTenants) -> None:
    """SEC-597: on the page of people; not from another workspace, not after they have left, not signed out."""
    ours, theirs = two_workspaces.a, two_workspaces.b
    keep_picture(user=ours.member, content=documents.png(30, 30))
    place = reverse("workspaces:member_picture", args=[ours.workspace.slug, ours.member.pk])
    assert place in ours.client("admin").get(f"/w/{ours.workspace.slug}/people/").content.decode()
    assert pointed_at(ours.client("auditor"), place).size == (SIDE, SIDE)
    from_there = reverse("workspaces:member_picture", args=[theirs.workspace.slug, ours.member.pk])
    assert theirs.client("owner").get(from_there).status_code == 404
    assert theirs.client("owner").get(place).status_code in (403, 404)
    assert Client().get(place).status_code == 302
    Membership.objects.for_workspace(ours.workspace).filter(user=ours.member).delete()
    assert ours.client("admin").get(place).status_code == 404


def test_the_platforms_owner_takes_a_picture_down(tenant: Tenant) -> None:
    """REL-1238: seen on the person's page, removed in the list of accounts or over REST, and in the log."""
    owner = tenant.owner
    owner.is_superuser = True
    owner.save(update_fields=["is_superuser"])
    people = [tenant.member, tenant.auditor]
    for person in people:
        keep_picture(user=person, content=documents.png(30, 30))
    client = tenant.client("owner")
    page = reverse("admin:workspaces_user_change", args=[tenant.member.pk])
    assert "data:image/jpeg;base64," in client.get(page).content.decode()
    listed = reverse("admin:workspaces_user_changelist")
    asked = act(client, listed, "remove_picture", *people, confirmed=False)
    assert "Remove the pictures of 2 people?" in asked.content.decode()
    texts = notices(act(client, listed, "remove_picture", *people, owner))
    assert texts == ["2 pictures removed.", f"{owner}: {owner.email} has no picture."]
    assert not PersonPicture.objects.exists()
    assert "data:image" not in client.get(page).content.decode()
    removed = AuditEntry.objects.across_workspaces().filter(details__after__picture_digest="")
    assert removed.count() == 2
    keep_picture(user=tenant.member, content=documents.png(30, 30))
    api = f"/api/platform/accounts/{tenant.member.pk}/"
    assert client.get(api).json()["has_picture"] is True
    assert client.delete(f"{api}picture/").json()["has_picture"] is False
    assert client.delete(f"{api}picture/").status_code == 409


def test_a_list_of_people_asks_no_more_for_their_pictures(tenant: Tenant) -> None:
    """REL-1229: addresses come with the people."""
    client = tenant.client("admin")
    page = f"/w/{tenant.workspace.slug}/people/"
    client.get(page)
    with CaptureQueriesContext(connection) as without:
        client.get(page)
    for person in tenant.people.values():
        keep_picture(user=person, content=documents.png(30, 30))
    with CaptureQueriesContext(connection) as with_pictures:
        client.get(page)
    assert len(with_pictures) == len(without)
