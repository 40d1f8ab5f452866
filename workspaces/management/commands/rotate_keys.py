"""manage.py rotate_keys: encrypt every stored secret with the primary key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import models, transaction

from workspaces.secrets import (
    PUT_BACK,
    EncryptedTextField,
    Secret,
    SecretUnreadable,
    count_by_key,
    encrypted,
    find_unreadable,
    primary_key_id,
    sealed_with,
    unreadable_in_words,
    unused_in_words,
)
from workspaces.words.formats import whole

BATCH = 200


class Command(BaseCommand):
    """Works online, in batches; stopped half-way, it goes on where it stopped."""

    help = "Encrypt every stored secret anew with the first of the encryption keys."
    requires_system_checks: list[str] = []  # they load every page

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--report", action="store_true", help="only count secrets by key")

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["report"]:
            done = 0
            # What does not open stays as it is, and is told at the end.
            for model, field in encrypted():
                of_field = 0
                for number in _rotate(model, field):
                    of_field += number
                    self.stdout.write(
                        f"{model._meta.verbose_name}: {whole(of_field)} {_secrets(of_field)} …"
                    )
                done += of_field
            self.stdout.write(f"{whole(done)} {_secrets(done)} encrypted anew.")
        usage = count_by_key()
        unreadable = find_unreadable()
        for key_id, count in sorted(usage.items()):
            note = " (primary)" if key_id == primary_key_id() else ""
            note += " (does not open them)" if key_id in unreadable else ""
            self.stdout.write(f"key {key_id}{note}: {whole(count)} {_secrets(count)}")
        if unreadable:
            sentence = unreadable_in_words(unreadable)
            raise CommandError(f"{sentence[0].upper()}{sentence[1:]}. {PUT_BACK}")
        if set(usage) <= {primary_key_id()}:
            self.stdout.write(f"{unused_in_words() or 'No other key is in use'}.")
        elif options["report"]:
            self.stdout.write("Run manage.py rotate_keys to encrypt them with the primary key.")


def _secrets(count: int) -> str:
    return "secret" if count == 1 else "secrets"


def _rotate(model: type[models.Model], field: EncryptedTextField) -> Iterator[int]:
    """Encrypt anew what another key has encrypted, a batch a transaction; give how many of each batch."""
    stale = (
        model._base_manager.exclude(sealed_with(field, primary_key_id()))
        .exclude(**{f"{field.attname}__isnull": True})
        .order_by("pk")
    )
    last: Any = None
    while True:
        done = 0
        with transaction.atomic():
            batch = stale.filter(pk__gt=last) if last is not None else stale
            rows = list(batch.select_for_update()[:BATCH])
            for row in rows:
                secret: Secret = getattr(row, field.attname)
                old = secret.sealed
                try:
                    plain = secret.reveal("key rotation")
                except SecretUnreadable:
                    continue
                setattr(row, field.attname, plain)
                new = field.pre_save(row, add=False)
                # Only if nobody has entered a new value meanwhile.
                done += model._base_manager.filter(pk=row.pk, **{field.attname: old}).update(
                    **{field.attname: new}
                )
        if not rows:
            return
        last = rows[-1].pk
        if done:
            yield done
