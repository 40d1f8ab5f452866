"""What goes over the wire: compressed files and pages, and files that change under a running server."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import brotli  # type: ignore[import-untyped]
import pytest
from django.contrib.staticfiles import finders
from django.core.files.storage import storages
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.test import AsyncClient, RequestFactory
from pytest_django.fixtures import Settings

from config.serving.middleware import CompressionMiddleware
from tests.factories import Tenant

pytestmark = pytest.mark.django_db  # a request gives its thread's connection back before it waits
APP_FILES = "config.serving.static.AppFilesFinder"
TEXT = b"const words = 1;\n" * 400


@pytest.fixture
def built(tmp_path: Path, settings: Settings) -> Iterator[Path]:
    """A web build of one file, and an empty folder to collect into."""
    dist = tmp_path / "dist"
    dist.mkdir()
    (dist / "app-abcdefgh.js").write_bytes(TEXT)
    (dist / "plain.js").write_bytes(TEXT)
    settings.STATICFILES_DIRS = [("web", dist)]
    settings.STATIC_ROOT = tmp_path / "collected"
    settings.SERVESTATIC_USE_FINDERS = True
    # The other tests go without it: each of their clients would look at thousands of files.
    settings.MIDDLEWARE = ["config.serving.static.StaticFilesMiddleware", *settings.MIDDLEWARE]
    finders.get_finder.cache_clear()  # type: ignore[attr-defined]  # cached, which the stubs do not say
    yield dist
    finders.get_finder.cache_clear()  # type: ignore[attr-defined]  # cached, which the stubs do not say


def collect(settings: Settings) -> None:
    """As `collectstatic` does, for the one folder."""
    (_, dist), *_ = settings.STATICFILES_DIRS
    target = Path(settings.STATIC_ROOT) / "web"
    target.mkdir(parents=True, exist_ok=True)
    names = []
    for source in dist.iterdir():
        (target / source.name).write_bytes(source.read_bytes())
        names.append(f"web/{source.name}")
    storage = storages.create_storage(
        {
            "BACKEND": "config.serving.static.StaticFilesStorage",
            "OPTIONS": {"location": settings.STATIC_ROOT},
        }
    )
    for _ in storage.post_process(dict.fromkeys(names)):  # type: ignore[attr-defined]
        pass


async def fetch(path: str, accepts: str = "", client: Any = None) -> tuple[dict[str, str], bytes]:
    headers = {"Accept-Encoding": accepts} if accepts else {}
    answer: Any = await (client or AsyncClient()).get(path, headers=headers)
    assert answer.status_code == 200
    return dict(answer.headers), b"".join([piece async for piece in answer.streaming_content])


async def test_browsers_get_the_smallest_copy_that_they_can_read(
    built: Path, settings: Settings
) -> None:
    """REL-370: Brotli, gzip or neither, by what was asked for; caches keep them apart, and a hashed name for ever."""
    collect(settings)
    headers, body = await fetch("/static/web/app-abcdefgh.js", "gzip, deflate, br")
    assert headers["Content-Encoding"] == "br"
    assert brotli.decompress(body) == TEXT
    assert headers["Vary"] == "Accept-Encoding"
    assert "immutable" in headers["Cache-Control"]
    headers, body = await fetch("/static/web/app-abcdefgh.js", "gzip")
    assert headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(body) == TEXT
    headers, body = await fetch("/static/web/app-abcdefgh.js")
    assert "Content-Encoding" not in headers
    assert body == TEXT
    headers, _ = await fetch("/static/web/plain.js", "br")
    assert "immutable" not in headers["Cache-Control"]
    assert "max-age=3600" in headers["Cache-Control"]


async def test_a_file_that_is_rebuilt_under_a_running_server_is_served_whole(
    built: Path, settings: Settings
) -> None:
    """REL-371: the length that is promised is that of the file as it is now, of the copy or of its newer source."""
    collect(settings)
    client = AsyncClient()
    for text in (TEXT, TEXT * 2, b"short"):
        (built / "plain.js").write_bytes(text)
        headers, body = await fetch("/static/web/plain.js", "br", client)
        assert int(headers["Content-Length"]) == len(body)
        whole = brotli.decompress(body) if headers.get("Content-Encoding") == "br" else body
        assert whole == text
    (built / "plain.js").unlink()
    (Path(settings.STATIC_ROOT) / "web" / "plain.js").unlink()
    assert (await client.get("/static/web/plain.js")).status_code == 404


async def test_paths_outside_the_folders_are_not_files(built: Path, tmp_path: Path) -> None:
    """SEC-320: neither dots, nor links, nor odd characters lead out of the static folders."""
    (tmp_path / "secret.txt").write_text("secret")
    os.symlink(tmp_path / "secret.txt", built / "linked.txt")
    for path in (
        "/static/web/../secret.txt",
        "/static/web/%2e%2e/secret.txt",
        "/static/web/..%5csecret.txt",
        "/static/web/linked.txt",
        "/static//etc/passwd",
        "/static/web/%00",
        f"/static/web/{'x' * 5000}",
        "/static/",
        "/static/web/",
    ):
        assert (await AsyncClient().get(path)).status_code == 404, path


def test_files_are_compressed_once(built: Path, settings: Settings) -> None:
    """REL-370: collecting again leaves the copies of what has not changed."""
    collect(settings)
    packed = Path(settings.STATIC_ROOT) / "web" / "plain.js.gz"
    packed.write_bytes(b"not touched")
    source = packed.with_suffix("")
    os.utime(packed, (source.stat().st_atime, source.stat().st_mtime))
    storage = storages.create_storage(
        {
            "BACKEND": "config.serving.static.StaticFilesStorage",
            "OPTIONS": {"location": settings.STATIC_ROOT},
        }
    )
    assert list(storage.post_process({"web/plain.js": None})) == []  # type: ignore[attr-defined]
    assert packed.read_bytes() == b"not touched"


def compressed(answer: HttpResponseBase) -> Any:
    """The answer, as it leaves for a browser that reads gzip."""
    asked = RequestFactory().get("/", headers={"Accept-Encoding": "gzip"})
    return CompressionMiddleware(lambda _: answer).process_response(asked, answer)


@pytest.mark.django_db
def test_a_path_of_two_apps_is_collected_once() -> None:
    """REL-2302: the admin's theme puts scripts in the place of Django's, and `collectstatic` told of them each time."""
    found = [path for path, _ in finders.get_finder(APP_FILES).list([])]
    assert "admin/js/actions.js" in found
    assert len(found) == len(set(found))


def test_pages_and_answers_are_compressed(tenant: Tenant) -> None:
    """REL-370: a page, JSON and its scripts go as gzip to those who can read it."""
    client = tenant.client("member")
    for path in (f"/w/{tenant.workspace.slug}/", "/api/schema/"):
        answer = client.get(path, headers={"Accept-Encoding": "gzip"})
        assert answer["Content-Encoding"] == "gzip", path
        assert "Accept-Encoding" in answer["Vary"]
        assert gzip.decompress(answer.content)


def test_lengths_of_compressed_pages_say_nothing() -> None:
    """SEC-321: the same page has many lengths, so a guess that is repeated in it cannot be measured."""
    sizes = {len(compressed(HttpResponse("words " * 200)).content) for _ in range(50)}
    assert len(sizes) > 5


def test_streams_and_files_are_left_alone() -> None:
    """REL-370: pieces of a stream arrive one by one; a picture gains nothing."""
    stream = StreamingHttpResponse([b"data: 1\n\n"], content_type="text/event-stream")
    picture = HttpResponse(b"x" * 1000, content_type="image/png")
    part = HttpResponse("x" * 1000, status=206, content_type="text/plain")
    for answer in (stream, picture, part):
        assert "Content-Encoding" not in compressed(answer).headers


async def test_a_file_without_a_document_carries_no_policy_of_documents(
    built: Path, settings: Settings
) -> None:
    """REL-370: scripts, styles and fonts go without; what a browser could show by itself has them all."""
    policies = {"Content-Security-Policy", "Permissions-Policy", "X-Frame-Options"}
    (built / "drawing.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    first, *others = settings.MIDDLEWARE
    settings.MIDDLEWARE = [*others, first]  # below those that write headers, as in the product
    headers, _ = await fetch("/static/web/plain.js")
    assert not policies & headers.keys()
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["X-Content-Type-Options"] == "nosniff"
    headers, _ = await fetch("/static/web/drawing.svg")
    assert policies <= headers.keys()
