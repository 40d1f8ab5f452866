"""What the doctor says of Redis, over real connections."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import redis
from django.test import Client
from django.utils import timezone
from django.utils.translation import override
from pytest_django.fixtures import Settings

from config import doctor
from config.doctor import FindingState
from config.installation.jobs import read_jobs, run_now
from tests.factories import Tenant
from tests.languages import translate
from tests.own_redis import own_redis
from tests.ports import free_port
from workspaces.errors import Conflict
from workspaces.models import InstalledVersion
from workspaces.process.schedules import HOUR

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_redis_that_loses_tasks_or_takes_none_is_told(
    tenant: Tenant, settings: Settings, tmp_path: Path
) -> None:
    """REL-1590, REL-2005: one without room refuses tasks, and one that makes room at random throws them away."""
    with own_redis(tmp_path) as url, redis.Redis.from_url(url) as client:
        settings.TRELLIS = settings.TRELLIS.model_copy(update={"redis_url": url})
        settings.CACHES = {
            "default": {"BACKEND": "config.caches.ForgetfulRedisCache", "LOCATION": url}
        }
        assert doctor.examine_part("Redis").state is FindingState.OK
        client.config_set("maxmemory-policy", "allkeys-lru")
        client.config_set("maxmemory", 10**9)
        assert "noeviction" in doctor.examine_part("Redis").advice
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("maxmemory", 1)
        assert doctor.examine_part("Redis").state is FindingState.FAILED
        assert "maxmemory" in doctor.examine_part("Redis").advice
        settings.TRELLIS = settings.TRELLIS.model_copy(
            update={"redis_url": url.replace("://", "://nobody:wrong@")}
        )
        assert "password" in doctor.examine_part("Redis").text
        settings.TRELLIS = settings.TRELLIS.model_copy(
            update={"redis_url": f"redis://127.0.0.1:{free_port()}"}
        )
        found = {one.part: one for one in doctor.examine()}
        assert [name for name, one in found.items() if one.state is FindingState.FAILED] == [
            "Redis"
        ]
        assert found["queues"].text == "the queue of tasks was not looked at"
        settings.TRELLIS = settings.TRELLIS.model_copy(update={"redis_url": url})
        # What an earlier look wrote does not hide it.
        answer = Client().get("/readyz")
        assert (answer.status_code, answer.json()["checks"]["cache"]) == (200, "failed")


def test_why_redis_refuses_is_told(
    tenant: Tenant, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-3111: an answer is not taken for silence, and a user who may write but not nudge is found.

    REL-3133: the page of jobs has the same words. REL-3172: in the reader's language.
    """
    with own_redis(tmp_path) as url, redis.Redis.from_url(url) as client:
        client.acl_setuser(
            "careful",
            enabled=True,
            nopass=True,
            keys="*",
            categories=["+@all"],
            reset_channels=True,
        )
        careful = url.replace("://", "://careful:any@")
        settings.CACHES = {
            "default": {"BACKEND": "config.caches.ForgetfulRedisCache", "LOCATION": careful}
        }
        settings.TRELLIS = settings.TRELLIS.model_copy(update={"redis_url": careful})
        assert (
            doctor.examine_part("Redis").text == "does not let its user do all that Trellis needs"
        )
        checks = Client().get("/readyz").json()["checks"]
        assert (checks["cache"], checks["layer"]) == ("ok", "failed")
        settings.TRELLIS = settings.TRELLIS.model_copy(update={"redis_url": url})
        client.replicaof("127.0.0.1", free_port())
        assert doctor.examine_part("Redis").text == "takes no writes, because it is a replica"
        InstalledVersion.objects.create(version="0.1.0", since=timezone.now() - HOUR)
        owner = replace(tenant.actor(), is_superuser=True)
        for refused, words in (
            (url, "Redis takes no writes, because it is a replica"),
            (url.replace("://", "://nobody:wrong@"), "Redis refuses the user or the password"),
        ):
            settings.TRELLIS = settings.TRELLIS.model_copy(update={"redis_url": refused})
            assert words in read_jobs().problem
            with pytest.raises(Conflict, match=words):
                run_now("audit.tasks.count_entries", actor=owner)
        refusal = "refuses the user or the password"
        with override(translate({refusal: "lehnt das Passwort ab"}, settings, monkeypatch)):
            assert "Redis lehnt das Passwort ab" in read_jobs().problem
