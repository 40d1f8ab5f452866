"""SQLite on a disk that forgets, when the power is cut, whatever nobody has synced.

A shim around SQLite's own file system notes every write, and keeps beside it what the file holds as of its last sync.
"""

from __future__ import annotations

import _sqlite3
import ctypes
import threading
from collections import defaultdict
from pathlib import Path
from typing import Any, ClassVar

_OK = 0
_P = ctypes.c_void_p
_INT = ctypes.c_int
_LONG = ctypes.c_int64
_OPEN = ctypes.CFUNCTYPE(_INT, _P, _P, _P, _INT, ctypes.POINTER(_INT))
_WRITE = ctypes.CFUNCTYPE(_INT, _P, _P, _INT, _LONG)
_TRUNCATE = ctypes.CFUNCTYPE(_INT, _P, _LONG)
_SYNC = ctypes.CFUNCTYPE(_INT, _P, _INT)


class _Methods(ctypes.Structure):
    """The beginning of `sqlite3_io_methods`; the rest is copied as it is."""

    _fields_: ClassVar[Any] = [
        ("version", _INT),
        ("close", _P),
        ("read", _P),
        ("write", _P),
        ("truncate", _P),
        ("sync", _P),
        ("rest", _P * 13),
    ]


class _Vfs(ctypes.Structure):
    """The beginning of `sqlite3_vfs`; the rest is copied as it is."""

    _fields_: ClassVar[Any] = [
        ("version", _INT),
        ("file_size", _INT),
        ("longest_path", _INT),
        ("next", _P),
        ("name", ctypes.c_char_p),
        ("data", _P),
        ("open", _P),
        ("rest", _P * 15),
    ]


class ForgetfulDisk:
    """Becomes the file system of every connection that this process opens from now on."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._paths: dict[int, str] = {}
        self._synced: dict[str, bytearray] = {}
        self._unsynced: dict[str, list[tuple[int, bytes | None]]] = defaultdict(list)
        self._kept: list[Any] = []
        self._wrapped: dict[int, Any] = {}
        library = ctypes.CDLL(_sqlite3.__file__)
        library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
        inner = library.sqlite3_vfs_find(None).contents
        self._open_inner = _OPEN(inner.open)
        self._open_ours = _OPEN(self._open)
        self._vfs = _Vfs.from_buffer_copy(inner)
        self._vfs.name = b"forgetful"
        self._vfs.next = None
        self._vfs.open = ctypes.cast(self._open_ours, _P)
        assert library.sqlite3_vfs_register(ctypes.byref(self._vfs), 1) == _OK

    def cut_power(self, path: Path, target: Path) -> Path:
        """Write what would be found of a database after a power cut at this moment."""
        with self._lock:
            for name, copy in ((str(path), target), (f"{path}-wal", Path(f"{target}-wal"))):
                copy.write_bytes(self._synced.get(name, b""))
        return target

    def _open(self, vfs: int, name: int, file: int, flags: int, out: Any) -> int:
        result = int(self._open_inner(vfs, name, file, flags, out))
        methods = ctypes.cast(file, ctypes.POINTER(_P))
        if result != _OK or not name or not methods[0]:
            return result
        path = ctypes.string_at(name).decode()
        with self._lock:
            self._paths[file] = path
            if path not in self._synced:
                self._synced[path] = bytearray(Path(path).read_bytes())
            methods[0] = ctypes.addressof(self._wrap(methods[0]))
        return result

    def _wrap(self, address: int) -> _Methods:
        if address in self._wrapped:
            return self._wrapped[address]
        inner = ctypes.cast(address, ctypes.POINTER(_Methods)).contents
        write_inner, truncate_inner = _WRITE(inner.write), _TRUNCATE(inner.truncate)
        sync_inner = _SYNC(inner.sync)

        def write(file: int, data: int, size: int, offset: int) -> int:
            with self._lock:
                self._unsynced[self._paths[file]].append((offset, ctypes.string_at(data, size)))
            return int(write_inner(file, data, size, offset))

        def truncate(file: int, size: int) -> int:
            with self._lock:
                self._unsynced[self._paths[file]].append((size, None))
            return int(truncate_inner(file, size))

        def sync(file: int, flags: int) -> int:
            result = int(sync_inner(file, flags))
            with self._lock:
                self._keep(self._paths[file])
            return result

        ours = _Methods.from_buffer_copy(inner)
        callbacks = _WRITE(write), _TRUNCATE(truncate), _SYNC(sync)
        ours.write, ours.truncate, ours.sync = (ctypes.cast(one, _P) for one in callbacks)
        self._kept += [callbacks, write_inner, truncate_inner, sync_inner]
        self._wrapped[address] = self._wrapped[ctypes.addressof(ours)] = ours
        return ours

    def _keep(self, path: str) -> None:
        content = self._synced[path]
        for offset, data in self._unsynced.pop(path, ()):
            if data is None:
                del content[offset:]
                continue
            content.extend(bytes(max(0, offset - len(content))))
            content[offset : offset + len(data)] = data
