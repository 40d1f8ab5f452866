"""Files over REST and for browsers: bounded uploads, conflicts, and content for its owner alone."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client, override_settings
from django.urls import reverse

from chat.artifacts import serving
from chat.engine.attaching import FileRef
from chat.models import (
    Artifact,
    ArtifactVersion,
    Attachment,
    Conversation,
    Message,
    QueuedMessage,
)
from config.serving.edge import BodyLimit
from tests import factories
from tests.chat.artifacts.pictures import picture
from tests.factories import Tenant, make_tenant
from workspaces.models import Membership

tenant = factories.tenant


@pytest.fixture
def client(tenant: Tenant) -> Client:
    return tenant.client("member", raise_request_exception=False)


def upload(
    client: Client, conversation: Conversation, name: str, content: bytes, **headers: str
) -> Any:
    file = SimpleUploadedFile(name, content, content_type="image/png")
    return client.post(
        f"/api/conversations/{conversation.pk}/artifacts/", {"file": file}, headers=headers
    )


def url_of(
    made: Any, conversation: Conversation, *, number: int = 1, name: str = "artifact"
) -> str:
    return reverse(
        f"chat:{name}",
        kwargs={
            "workspace_slug": conversation.workspace.slug,
            "artifact_id": made["id"],
            "number": number,
        },
    )


def test_a_file_that_a_message_took_along_is_kept_where_its_draft_is_out_of_date(
    client: Client, conversation: Conversation
) -> None:
    """REL-2075: a page leaves out only what no message has."""
    tenant_id = conversation.workspace_id
    own = f"/api/artifacts/{upload(client, conversation, 'a.txt', b'one').json()['id']}/"
    assert client.delete(f"{own}?unless_sent=maybe").status_code == 400
    assert client.delete(f"{own}?unless_sent=true").status_code == 204
    assert client.post(f"{own}undelete/").status_code == 200
    version = ArtifactVersion.objects.for_workspace(tenant_id).get(artifact__name="a.txt")
    message = Message.objects.create(
        workspace_id=tenant_id, conversation=conversation, role="user", text="See", order_key=1
    )
    Attachment.objects.create(
        workspace_id=tenant_id, message=message, position=0, version=version, title="a.txt"
    )
    kept = client.delete(f"{own}?unless_sent=true")
    assert kept.status_code == 409
    assert "stays in the chat" in kept.json()["errors"][0]["detail"]
    assert client.delete(own).status_code == 204


def test_a_file_that_waits_with_a_message_is_kept_too(
    client: Client, conversation: Conversation
) -> None:
    """REL-2075: what was sent while a turn runs has its files when its time comes."""
    made, other = (upload(client, conversation, name, b"one").json() for name in ("a.txt", "b.txt"))
    QueuedMessage.objects.create(
        workspace_id=conversation.workspace_id,
        conversation=conversation,
        client_id="c1",
        text="See",
        attachments=[FileRef(artifact_id=UUID(made["id"]), version=1).as_json()],
        order_key=1,
        asked_by=conversation.owner,
        source="chat",
    )
    assert client.delete(f"/api/artifacts/{made['id']}/?unless_sent=true").status_code == 409
    assert client.delete(f"/api/artifacts/{other['id']}/?unless_sent=true").status_code == 204


def test_a_file_is_uploaded_changed_restored_renamed_deleted_and_brought_back(
    client: Client, conversation: Conversation
) -> None:
    """SEC-78: the type is that of the content, whatever the upload claims."""
    made = upload(client, conversation, "../note.md", b"# one")
    assert made.status_code == 201
    row = made.json()
    assert (row["name"], row["version"]["content_type"]) == ("note.md", "text/markdown")
    assert row["version"]["origin"] == "upload"
    own = f"/api/artifacts/{row['id']}/"
    json = {"content_type": "application/json"}
    saved = client.post(f"{own}versions/", {"content": "# two", "base": 1}, **json)  # type: ignore[arg-type]
    assert saved.status_code == 201
    assert saved.json()["version"]["number"] == 2
    late = client.post(f"{own}versions/", {"content": "# late", "base": 1}, **json)  # type: ignore[arg-type]
    assert late.status_code == 409
    assert "version 2 in the meantime" in late.json()["errors"][0]["detail"]
    file = SimpleUploadedFile("x", b"# three")
    assert client.post(f"{own}versions/", {"file": file, "base": "2"}).status_code == 201
    back = client.post(f"{own}restore/", {"version": 1}, **json)  # type: ignore[arg-type]
    assert back.json()["version"]["origin"] == "restore"
    versions = client.get(f"{own}versions/").json()
    assert [one["number"] for one in versions] == [4, 3, 2, 1]
    assert client.get(f"{own}versions/2/content/").content == b"# two"
    assert client.patch(own, {"name": "b.txt"}, **json).json()["name"] == "b.txt"  # type: ignore[arg-type]
    assert client.delete(own).status_code == 204
    assert client.get(own).status_code == 404
    assert client.get(f"/api/conversations/{conversation.pk}/artifacts/").json() == []
    assert client.post(f"{own}undelete/", **json).status_code == 200  # type: ignore[arg-type]
    [listed] = client.get(f"/api/conversations/{conversation.pk}/artifacts/").json()
    assert listed == client.get(own).json()


def test_a_repeated_upload_is_one_file_and_another_content_is_another_request(
    client: Client, conversation: Conversation
) -> None:
    """REL-02: with an Idempotency-Key the same upload makes one file; the key does not stand for other content."""
    key = {"Idempotency-Key": "once"}
    first = upload(client, conversation, "a.md", b"one", **key)
    again = upload(client, conversation, "a.md", b"one", **key)
    other = upload(client, conversation, "a.md", b"two", **key)
    assert first.json() == again.json()
    assert again["Idempotency-Replayed"] == "true"
    assert other.status_code == 422
    assert Artifact.objects.for_workspace(conversation.workspace).count() == 1


def test_false_lengths_are_told(client: Client, conversation: Conversation) -> None:
    """SEC-78: an upload without a length, or with one that is none or too short, is a 400, never a 500."""
    body = (
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
        + b"y" * 100
        + b"\r\n--x--\r\n"
    )
    for length in ("", "-5", "x", "12"):
        answer = client.generic(
            "POST",
            f"/api/conversations/{conversation.pk}/artifacts/",
            body,
            content_type="multipart/form-data; boundary=x",
            CONTENT_LENGTH=length,
        )
        assert answer.status_code == 400, length
    assert not Artifact.objects.for_workspace(conversation.workspace).exists()


def test_uploads_are_counted_while_they_are_read(
    client: Client, conversation: Conversation, settings: Any
) -> None:
    """SEC-78: too large a file is refused before it is whole; two at once, or none, are no upload."""
    small = settings.TRELLIS.model_copy(update={"artifact_max_bytes": 1000})
    with override_settings(TRELLIS=small):
        assert upload(client, conversation, "a.md", b"x" * 1001).status_code == 413
        assert upload(client, conversation, "a.md", b"x" * 1000).status_code == 201
    address = f"/api/conversations/{conversation.pk}/artifacts/"
    two = {"file": [SimpleUploadedFile("a", b"1"), SimpleUploadedFile("b", b"2")]}
    assert client.post(address, two).status_code == 400
    assert client.post(address, {"name": "x"}).status_code == 400
    assert client.post(address, {}, content_type="application/json").status_code == 415
    assert client.generic("POST", address, b"x", "multipart/form-data").status_code == 400


def test_a_disk_without_room_refuses_an_upload_in_words(
    client: Client, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-2237: also where the request itself found room, and its file does not."""
    with Path("/dev/full").open("wb", buffering=0) as full:
        monkeypatch.setattr(tempfile, "SpooledTemporaryFile", lambda max_size: full)
        answer = upload(client, conversation, "a.md", b"x" * 1000)
    assert answer.status_code == 507
    assert "no room" in answer.json()["errors"][0]["detail"]


@pytest.mark.asyncio
async def test_the_edge_reads_no_more_than_anybody_may_send() -> None:
    """SEC-78: chunked bodies that never end are cut at the limit; too long a declared one is not read at all."""
    pieces = 0

    async def endless() -> dict[str, Any]:
        nonlocal pieces
        pieces += 1
        return {"type": "http.request", "body": b"x" * 1000, "more_body": True}

    async def collects(scope: Any, receive: Any, send: Any) -> None:
        while (await receive())["more_body"]:
            pass

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    app = BodyLimit(collects, most_bytes=lambda _path: 10_000)
    await app({"type": "http", "headers": []}, endless, send)
    assert (pieces, sent[0]["status"]) == (11, 413)
    sent.clear()
    await app({"type": "http", "headers": [(b"content-length", b"10001")]}, endless, send)
    assert (pieces, sent[0]["status"]) == (11, 413)


def test_content_is_the_owners_alone_in_every_form(
    tenant: Tenant, client: Client, conversation: Conversation
) -> None:
    """SEC-08: exact addresses, ranges and conditional requests are nothing for others, nor after removal."""
    made = upload(client, conversation, "a.html", b"<p>secret").json()
    other = make_tenant("other")
    urls = [
        url_of(made, conversation),
        url_of(made, conversation, name="artifact_preview"),
        f"/api/artifacts/{made['id']}/versions/1/content/",
    ]
    etag = f'"{made["version"]["sha256"]}"'
    headers = [{}, {"Range": "bytes=0-1"}, {"If-None-Match": etag}, {"If-None-Match": "*"}]
    people = [
        *(tenant.client(role) for role in ("owner", "admin", "auditor")),
        other.client("owner"),
    ]
    for url in urls:
        for header in headers:
            assert client.get(url, headers=header).status_code in {200, 206, 304}
            for person in people:
                answer = person.get(url, headers=header)
                assert answer.status_code == 404, url
                assert b"secret" not in answer.content
            stranger = Client().get(url, headers=header)
            assert stranger.status_code in {302, 401, 403}
    assert client.delete(f"/api/artifacts/{made['id']}/").status_code == 204
    assert {client.get(url).status_code for url in urls} == {404}
    client.post(f"/api/artifacts/{made['id']}/undelete/")
    Membership.objects.for_workspace(tenant.workspace).filter(user=tenant.member).delete()
    for url in urls:
        assert client.get(url, headers={"If-None-Match": etag}).status_code in {400, 403, 404}


RANGES: list[tuple[str, int, bytes, str | None]] = [
    ("bytes=0-3", 206, b"0123", "bytes 0-3/10"),
    ("bytes=7-", 206, b"789", "bytes 7-9/10"),
    ("Bytes=7-", 206, b"789", "bytes 7-9/10"),
    ("bytes=-2", 206, b"89", "bytes 8-9/10"),
    ("bytes=5-100", 206, b"56789", "bytes 5-9/10"),
    ("bytes=-100", 206, b"0123456789", "bytes 0-9/10"),
    ("bytes=10-", 416, b"", "bytes */10"),
    ("bytes=-0", 416, b"", "bytes */10"),
    ("bytes=4-2", 200, b"0123456789", None),
    ("bytes=0-1,4-5", 200, b"0123456789", None),
    ("lines=1-2", 200, b"0123456789", None),
    ("bytes=-", 200, b"0123456789", None),
    ("bytes=99999999999999999999999-", 200, b"0123456789", None),
]


def test_ranges(client: Client, conversation: Conversation) -> None:
    """SEC-08: parts of a file are given as HTTP says; what is not understood gives the whole."""
    made = upload(client, conversation, "a.txt", b"0123456789").json()
    url = url_of(made, conversation)
    for header, status, body, content_range in RANGES:
        answer = client.get(url, headers={"Range": header})
        assert (answer.status_code, answer.content) == (status, body), header
        assert answer.get("Content-Range") == content_range, header
        stale = client.get(url, headers={"Range": header, "If-Range": '"other"'})
        assert (stale.status_code, stale.content) == (200, b"0123456789")


def test_a_download_goes_on_only_in_the_same_file(
    client: Client, conversation: Conversation
) -> None:
    """REL-2093: the tag is that of the bytes; another one, a weak one or a time gives the whole, as HTTP says."""
    made = upload(client, conversation, "a.txt", b"0123456789").json()
    url = url_of(made, conversation)
    etag = client.get(url)["ETag"]
    rest = {"Range": "bytes=4-"}
    same = client.get(url, headers={**rest, "If-Range": etag})
    assert (same.status_code, same.content, same["ETag"]) == (206, b"456789", etag)
    for other in (f"W/{etag}", '"other"', "Sun, 29 Nov 2026 12:00:00 GMT"):
        whole = client.get(url, headers={**rest, "If-Range": other})
        assert (whole.status_code, whole.content) == (200, b"0123456789")
    for header, status in (({"If-Match": '"other"'}, 412), ({"If-Match": etag}, 206)):
        assert client.get(url, headers={**rest, **header}).status_code == status
    # Ranges are for GET alone (RFC 9110, 14.2).
    for wanted in ("bytes=4-", "bytes=10-"):
        head = client.head(url, headers={"Range": wanted})
        assert (head.status_code, head["Content-Length"]) == (200, "10")
        assert "Content-Range" not in head


def test_a_large_text_is_sent_as_it_is_so_that_it_can_go_on(
    client: Client, conversation: Conversation
) -> None:
    """REL-2093: what was compressed on the way has no tag by which a browser could go on."""
    read = {"Accept-Encoding": "gzip"}
    small = upload(client, conversation, "a.txt", b"0123456789" * 1000).json()
    answer = client.get(url_of(small, conversation), headers=read)
    assert answer["Content-Encoding"] == "gzip"
    large = upload(client, conversation, "b.txt", b"0123456789" * 200_000).json()
    answer = client.get(url_of(large, conversation), headers=read)
    assert "Content-Encoding" not in answer
    assert not answer["ETag"].startswith("W/")
    assert answer["Accept-Ranges"] == "bytes"


def test_head_and_conditional_requests(client: Client, conversation: Conversation) -> None:
    """SEC-08: known content is not sent again; HEAD says what GET would."""
    made = upload(client, conversation, "a.txt", b"0123456789").json()
    url = url_of(made, conversation)
    etag = client.get(url)["ETag"]
    known = client.get(url, headers={"If-None-Match": f'W/{etag}, "x"'})
    assert (known.status_code, known.content) == (304, b"")
    head = client.head(url)
    assert (head["Content-Length"], head.content) == ("10", b"")
    assert client.post(url).status_code == 405


DOWNLOADS: list[tuple[str, bytes, str]] = [
    ("a.html", b"<script>1</script>", 'attachment; filename="a.html"'),
    ("a.svg", b"<svg/>", 'attachment; filename="a.svg"'),
    ("Grüße.js", b"alert(1)", "attachment; filename*=utf-8''Gr%C3%BC%C3%9Fe.js"),
    ("a.html", picture(), 'attachment; filename="a.html.png"'),
    ("a\r\nSet-Cookie: x=y.md", b"x", 'attachment; filename="a__Set-Cookie_ x=y.md"'),
    ('"; filename="b.exe', b"x", 'attachment; filename="_; filename=_b.exe"'),
]


def test_downloads_can_do_nothing(client: Client, conversation: Conversation) -> None:
    """SEC-85, SEC-89: always an attachment under a cleaned name, never guessed, sandboxed, for our own pages alone."""
    for name, content, disposition in DOWNLOADS:
        answer = client.post(
            f"/api/conversations/{conversation.pk}/artifacts/",
            {"file": SimpleUploadedFile("x", content), "name": name},
        )
        url = url_of(answer.json(), conversation)
        for given in (
            client.get(url),
            client.get(f"/api/artifacts/{answer.json()['id']}/versions/1/content/"),
        ):
            assert given.content == content
            assert given["Content-Disposition"] == disposition
            assert given["Content-Security-Policy"] == serving.DOWNLOAD_POLICY
            assert given["X-Content-Type-Options"] == "nosniff"
            assert given["Cross-Origin-Resource-Policy"] == "same-origin"
            assert "Set-Cookie" not in given.headers
        client.delete(f"/api/artifacts/{answer.json()['id']}/")


def test_a_text_is_given_with_the_name_of_its_encoding(
    client: Client, conversation: Conversation
) -> None:
    """REL-1156: as it was saved; a page is shown in UTF-8, so that nothing in it is missed."""
    made = upload(client, conversation, "a.csv", "Größe".encode("cp1252")).json()
    given = client.get(f"/api/artifacts/{made['id']}/versions/1/content/")
    assert given.content == "Größe".encode("cp1252")
    assert given["Content-Type"] == "text/csv; charset=windows-1252"
    page = upload(client, conversation, "a.html", "<iframe>ü".encode("utf-16")).json()
    shown = client.get(url_of(page, conversation, name="artifact_preview"))
    assert shown.content == "<x-iframe>ü".encode()
    assert shown["Content-Type"] == "text/html; charset=utf-8"


def test_previews_are_for_frames_and_of_few_kinds(
    client: Client, conversation: Conversation
) -> None:
    """SEC-85, SEC-73: pages and drawings in a sandbox, pictures drawn anew, nothing else at all."""

    def shown(name: str, content: bytes, **headers: str) -> Any:
        made = upload(client, conversation, name, content).json()
        return client.get(url_of(made, conversation, name="artifact_preview"), headers=headers)

    page = shown("a.html", b"<p>hi<IFRAME src=//x></iframe><framed>")
    assert page.content == b"<p>hi<x-IFRAME src=//x></x-iframe><framed>"
    assert page["Content-Security-Policy"] == serving.FRAME_POLICY
    assert page["X-Frame-Options"] == "SAMEORIGIN"
    assert page["Content-Type"] == "text/html; charset=utf-8"
    for still in (
        shown("a.html", b"<p>", **{"Sec-Fetch-Dest": "document"}),
        shown("b.svg", b"<svg/>"),
    ):
        assert still["Content-Security-Policy"] == serving.PAGE_POLICY
        assert "script" not in still["Content-Security-Policy"]
    drawn = shown("c.png", picture())
    assert drawn["Content-Type"] == "image/png"
    assert drawn["Content-Security-Policy"] == serving.DOWNLOAD_POLICY
    for name, content in (("d.md", b"# x"), ("e.js", b"1"), ("f.pdf", b"%PDF-1.4 %%EOF")):
        assert shown(name, content).status_code == 404


def test_a_page_without_colours_follows_the_readers_theme(
    client: Client, conversation: Conversation
) -> None:
    """REL-422: below its doctype, and only if it chooses nothing itself; unknown themes change nothing."""

    def shown(content: bytes, theme: str) -> bytes:
        made = upload(client, conversation, "a.html", content).json()
        address = url_of(made, conversation, name="artifact_preview")
        return client.get(address, {"theme": theme}).content

    plain = b"<!doctype html>\n<h1>Plan</h1>"
    dark = shown(plain, "dark")
    assert dark.startswith(b'<!doctype html><meta name="color-scheme" content="dark"><style>')
    assert dark.endswith(b"\n<h1>Plan</h1>")
    assert b'content="light"' in shown(plain, "light")
    assert shown(plain, '"><script>') == plain
    for own in (b"<p style='color:red'>", b"<style>p{background:#fff}</style>", b'<link href="x">'):
        assert shown(own, "dark") == own


def test_diagrams_are_drawn_without_our_origin_and_without_a_network(
    client: Client, conversation: Conversation
) -> None:
    """SEC-345: the frame may run what bears this answer's nonce, and fetch nothing."""
    address = reverse("chat:diagrams", kwargs={"workspace_slug": conversation.workspace.slug})
    policies = [client.get(address)["Content-Security-Policy"] for _ in range(2)]
    assert policies[0] != policies[1]
    assert policies[0].startswith("sandbox allow-scripts; default-src 'none'; script-src 'nonce-")
    assert "allow-same-origin" not in policies[0]
    assert "unsafe-eval" not in policies[0]
