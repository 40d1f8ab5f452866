"""What SQLite keeps on the disk beside its file."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection, transaction

pytestmark = [pytest.mark.django_db(transaction=True)]


def test_the_log_beside_the_file_gives_its_room_back() -> None:
    """REL-1587: else one import would keep its size on the disk for as long as the server runs."""
    if connection.vendor != "sqlite":
        pytest.skip("SQLite's own")
    log = Path(f"{connection.settings_dict['NAME']}-wal")
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE large (content BLOB)")
        try:
            with transaction.atomic():
                for _ in range(24):
                    cursor.execute("INSERT INTO large VALUES (zeroblob(1048576))")
            for _ in range(3):  # one empties the log, the next begins it anew
                cursor.execute("INSERT INTO large VALUES (zeroblob(10))")
            assert log.stat().st_size <= 16 * 1024**2
        finally:
            cursor.execute("DROP TABLE large")
