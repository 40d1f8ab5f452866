"""The log is not compared with tables of another version."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from audit.actions import Action
from audit.models import AuditEntry
from audit.verification.nightly import verify_log
from config import doctor
from config.doctor import FindingState
from tests.factories import Tenant

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_engines]


@pytest.mark.parametrize("is_newer", [True, False])
def test_an_upgrade_under_way_is_nobodys_work(tenant: Tenant, *, is_newer: bool) -> None:
    """REL-1588: neither by night nor by hand, with old code on new tables and the other way round."""
    recorder = MigrationRecorder.Migration.objects
    last = MigrationLoader(None).graph.leaf_nodes("audit")[0][1]
    if is_newer:
        MigrationRecorder.Migration(app="audit", name="9999_from_the_future").save()
    else:
        recorder.filter(app="audit", name=last).delete()
    try:
        for is_incremental in (False, True):
            verify_log(is_incremental=is_incremental)
        with pytest.raises(CommandError, match="another version"):
            call_command("verify_audit")
        verified = AuditEntry.objects.across_workspaces().filter(action=Action.LOG_VERIFIED)
        assert not verified.exists()
        found = {one.part: one for one in doctor.examine()}
        if is_newer:
            assert found["database"].state is FindingState.LOOK
            assert "9999_from_the_future" in found["database"].text
        else:
            assert found["database"].state is FindingState.FAILED
            assert "migrate" in found["triggers"].advice
    finally:
        if is_newer:
            recorder.filter(name="9999_from_the_future").delete()
        else:
            MigrationRecorder.Migration(app="audit", name=last).save()
    verify_log(is_incremental=False)
    assert verified.count() == 1
