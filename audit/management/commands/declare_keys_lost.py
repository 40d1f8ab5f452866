"""``manage.py declare_keys_lost``: say that keys of the log are lost for good, so that what is known is no alarm."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit.proof.signing import SigningKeyMissing
from audit.proof.trellis_verify import WHOLE, lines_of
from audit.sealing import sealer
from audit.sealing.checkpoints import make_checkpoint
from audit.sealing.key_loss import DoubtfulKeyLoss, KeyLoss, declare_key_loss, find_key_loss
from audit.verification.online import verify
from workspaces.actors import Actor, Source
from workspaces.command_arguments import person_at_machine
from workspaces.database.migration_state import is_of_this_version
from workspaces.errors import Conflict
from workspaces.words.formats import whole

_LEAST_DIGITS: Final = 16
_NAMED: Final = 20


class Command(BaseCommand):
    """Shows what is lost. With a reason and the lost key's fingerprint, declares it."""

    help = "Declares keys of the audit log lost: it is signed again, and entries under a lost key are no alarm any more."
    requires_system_checks: list[str] = []  # they load every page

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--reason", default="", help="how the key was lost; stays in the log")
        parser.add_argument(
            "--fingerprint",
            default="",
            help="of the lost signing key, as you noted it elsewhere; at least 16 digits",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if not is_of_this_version():
            raise CommandError("Run first: python3 manage.py migrate", returncode=3)
        sealer.seal_again()
        _seal_all()
        with suppress(SigningKeyMissing):
            make_checkpoint()  # compares the file outside with the database, before anything is signed
        try:
            loss = find_key_loss()
        except DoubtfulKeyLoss as error:
            raise CommandError(str(error), returncode=1) from error
        if loss is None:
            self.stdout.write(
                "The key that signs the log is in the settings, and the newest checkpoint says of no other TRELLIS_AUDIT_KEY"
                " that it is the log's. So there is no loss to declare. To see whether entries were altered, run:"
                " python3 manage.py verify_audit"
            )
            return
        self._show(loss)
        if not options["reason"]:
            self.stdout.write(
                "Nothing was declared. Put the key back if you can. If it is lost for good, run this with --reason"
                + (" and --fingerprint." if loss.signing_key else ".")
            )
            return
        if loss.signing_key:
            _compare(loss.signing_key, options["fingerprint"])
        try:
            declare_key_loss(loss, by=person_at_machine(), reason=options["reason"][:500])
        except Conflict as error:
            raise CommandError(str(error), returncode=1) from error
        _seal_all()
        make_checkpoint()
        actor = Actor.system(label="declare_keys_lost", source=Source.COMMAND, workspace_id=None)
        report = verify(actor=actor)
        for line in lines_of(report):
            self.stdout.write(line)
        if report.result != WHOLE:
            raise CommandError(
                f"The loss is declared. The log is {report.result} for other reasons.", returncode=1
            )
        self.stdout.write(
            "The loss is declared."
            + (" Give your auditors the fingerprint of the new key." if loss.signing_key else "")
        )

    def _show(self, loss: KeyLoss) -> None:
        self.stdout.write(
            f"The key that signed the log is not in the settings: {loss.signing_key}"
            if loss.signing_key
            else "TRELLIS_AUDIT_KEY in the settings is not the key that the newest checkpoint names."
        )
        for chain in loss.chains:
            if chain.until and chain.newest:
                self.stdout.write(
                    f"Chain {chain.chain_id}: entries up to seq {whole(chain.until)}, {chain.newest:%Y-%m-%d %H:%M} UTC,"
                    " were written under a TRELLIS_AUDIT_KEY that is not in the settings."
                )
            for pk in list(chain.unsealed)[:_NAMED]:
                self.stdout.write(f"Chain {chain.chain_id}: entry {pk} was refused its seal.")
            if (more := len(chain.unsealed) - _NAMED) > 0:
                self.stdout.write(f"… and {whole(more)} more.")


def _compare(signing_key: str, given: str) -> None:
    """Refuse unless a person knows the lost key by another way than from this database."""
    digits = given.lower().replace(":", "").strip()
    if len(digits) < _LEAST_DIGITS or not signing_key.startswith(digits):
        raise CommandError(
            "--fingerprint has to be that of the lost key, as you or your auditors noted it elsewhere. If it is another one"
            " than above, somebody has replaced the log.",
            returncode=1,
        )


def _seal_all() -> None:
    while (batch := sealer.seal_pending(is_key_lost=True)).sealed + batch.skipped:
        pass
