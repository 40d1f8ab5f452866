"""Static files: compressed when they are collected, and served as they are on disk at that moment."""

from __future__ import annotations

import os
import re
import threading
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import brotli  # type: ignore[import-untyped]
from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.staticfiles.finders import AppDirectoriesFinder
from django_vite.core.asset_loader import DjangoViteAppClient
from servestatic.compress import Compressor
from servestatic.middleware import ServeStaticMiddleware
from servestatic.storage import CompressedStaticFilesStorage

from workspaces.database import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from django.core.files.storage import Storage
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase
    from servestatic.responders import StaticFile

_IMMUTABLE = re.compile(r"^/static/web/.+-[\w-]{8}\.\w+$")


class AppFilesFinder(AppDirectoriesFinder):
    """Gives each path once. The admin's theme puts scripts in the place of Django's, so that is no fault to tell of."""

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterator[tuple[str, Storage]]:
        """Give the files of the apps. Of those with one path, only the first is served."""
        seen = set()
        for path, storage in super().list(ignore_patterns):
            if path not in seen:
                seen.add(path)
                yield path, storage


class StaticFilesMiddleware:
    """Serves what is under the static prefix, and lets everything else pass without changing over to async code."""

    sync_capable = True
    async_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response
        self._files = _Files(sync_to_async(get_response))

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path_info.startswith(self._files.static_prefix):
            answer: HttpResponseBase = wait_for(self._files, request)
            return answer
        return self._get_response(request)


class _Files(ServeStaticMiddleware):
    """Files of the web build have a hash in their name and are kept for ever.

    Each request looks at the disk (`SERVESTATIC_AUTOREFRESH`): a file that was rebuilt meanwhile has another length, and
    a browser would wait for the rest of the one that was promised.
    """

    def immutable_file_test(self, path: str, url: str) -> bool:
        return _IMMUTABLE.match(url) is not None

    def add_file_to_dictionary(self, *_: Any, **__: Any) -> None:
        """Read nothing when the server starts: requests look at the disk."""

    def get_static_file(
        self, path: str, url: str, stat_cache: dict[str, os.stat_result] | None = None
    ) -> StaticFile:
        """Give the collected file in place of its source, as long as it is the same: it has compressed copies."""
        collected = Path(settings.STATIC_ROOT, url.removeprefix(self.static_prefix))
        if self.use_finders and _is_copy(collected, of=Path(path)):
            path = str(collected)
        return super().get_static_file(path, url)


def _is_copy(collected: Path, *, of: Path) -> bool:
    try:
        copy, source = collected.stat(), of.stat()
    except (OSError, ValueError):
        return False
    return copy.st_size == source.st_size and copy.st_mtime >= source.st_mtime


class WebApp(DjangoViteAppClient):
    """Tags of the web build, whose files have fixed addresses: put together once, and not for each file of each page."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.get_production_server_url = cache(super().get_production_server_url)


class StaticFilesStorage(CompressedStaticFilesStorage):
    """Compresses what `collectstatic` collects.

    It renames nothing: the web build names its own files, and lazily loaded chunks would be fetched twice.
    """

    def create_compressor(self, **options: Any) -> Compressor:
        return _Compressor(**options)


_BEST, _QUICK = 11, 9
"""Brotli's qualities: the best takes six times as long and saves seven percent. Only our own files are worth it."""
_LARGE = 1_000_000
"""Bytes; what is larger is a library that few messages need."""
_quality = threading.local()


class _Compressor(Compressor):
    def compress(self, path: str | os.PathLike[str]) -> list[str]:
        """As its base; nothing to do for a file whose compressed copy carries the file's own time."""
        source, packed = Path(path), Path(f"{os.fspath(path)}.gz")
        if packed.exists() and abs(packed.stat().st_mtime - source.stat().st_mtime) < 0.001:
            return []
        _quality.chosen = (
            _BEST if "web" in source.parts and source.stat().st_size < _LARGE else _QUICK
        )
        made: list[str] = super().compress(path)
        return made

    @staticmethod
    def compress_brotli(data: bytes) -> bytes:
        """Compress with the quality that suits the file under work in this thread."""
        compressed: bytes = brotli.compress(data, quality=_quality.chosen)
        return compressed
