"""manage.py rotate_keys: seal every stored secret with the primary key."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.apps import apps
from django.core.management.base import BaseCommand, CommandParser
from django.db import models, transaction

from workspaces.secrets import (
    EncryptedTextField,
    Secret,
    encrypted_fields,
    key_id_of,
    primary_key_id,
)

BATCH = 200


class Command(BaseCommand):
    """Works online, in batches; stopped half-way, it goes on where it stopped."""

    help = "Encrypt every stored secret anew with the first of the encryption keys."
    requires_system_checks: list[str] = []  # they load every page

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--report", action="store_true", help="only count secrets by key")

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["report"]:
            done = sum(
                _rotate(model, field)
                for model in apps.get_models()
                for field in encrypted_fields(model)
            )
            self.stdout.write(f"{done} secrets sealed anew.")
        usage = _usage()
        for key_id, count in sorted(usage.items()):
            note = " (primary)" if key_id == primary_key_id() else ""
            self.stdout.write(f"key {key_id}{note}: {count} secrets")
        if set(usage) <= {primary_key_id()}:
            self.stdout.write("No other key is in use: the old ones can be removed.")


def _rotate(model: type[models.Model], field: EncryptedTextField) -> int:
    """Seal anew what another key has sealed, a batch a transaction."""
    done = 0
    primary = f"v1.{primary_key_id()}."
    stale = (
        model._base_manager.exclude(**{f"{field.attname}__startswith": primary})
        .exclude(**{f"{field.attname}__isnull": True})
        .order_by("pk")
    )
    last: Any = None
    while True:
        with transaction.atomic():
            batch = stale.filter(pk__gt=last) if last is not None else stale
            rows = list(batch.select_for_update()[:BATCH])
            for row in rows:
                secret: Secret = getattr(row, field.attname)
                old = secret.sealed
                setattr(row, field.attname, secret.reveal("key rotation"))
                new = field.pre_save(row, add=False)
                # Only if nobody has entered a new value meanwhile.
                done += model._base_manager.filter(pk=row.pk, **{field.attname: old}).update(
                    **{field.attname: new}
                )
        if not rows:
            return done
        last = rows[-1].pk


def _usage() -> Counter[str]:
    usage: Counter[str] = Counter()
    for model in apps.get_models():
        for field in encrypted_fields(model):
            values = model._base_manager.exclude(**{f"{field.attname}__isnull": True})
            for secret in values.values_list(field.attname, flat=True).iterator():
                usage[key_id_of(secret.sealed)] += 1
    return usage
