"""The environment is read once, whole, and refused in one line."""

from __future__ import annotations

import base64
import os
import secrets
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from config.env import ROOT, Environment, normal_origin
from config.keys import generate_keys, load_or_create_keys

KEY = base64.b64encode(secrets.token_bytes(32)).decode()
PRODUCTION = {
    "DATABASE_URL": "postgres://trellis@db/trellis",
    "TRELLIS_PUBLIC_ORIGINS": "https://chat.example.org",
}


def start(tmp_path: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Read the environment in a fresh process that knows only these variables."""
    return subprocess.run(
        [sys.executable, "-c", "from config.env import read_environment; read_environment()"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "TRELLIS_DATA_DIR": str(tmp_path), **variables},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({}, ["SECRET_KEY", "TRELLIS_ENCRYPTION_KEYS", "TRELLIS_AUDIT_KEY"]),
        ({"SECRET_KEY": ""}, ["SECRET_KEY"]),
        ({"SECRET_KEY": "short"}, ["SECRET_KEY"]),
        ({"SECRET_KEY": "change-me-" * 8}, ["SECRET_KEY"]),
        ({"SECRET_KEY": "django-insecure-" + secrets.token_urlsafe(50)}, ["SECRET_KEY"]),
        ({"SECRET_KEY": "a" * 64}, ["SECRET_KEY"]),
        ({"TRELLIS_ENCRYPTION_KEYS": "k1:AAAA"}, ["TRELLIS_ENCRYPTION_KEYS"]),
        ({"TRELLIS_ENCRYPTION_KEYS": f"k1:{KEY},k1:{KEY}"}, ["TRELLIS_ENCRYPTION_KEYS"]),
        (
            {"TRELLIS_ENCRYPTION_KEYS": "k1:" + base64.b64encode(bytes(32)).decode()},
            ["TRELLIS_ENCRYPTION_KEYS"],
        ),
        ({"TRELLIS_AUDIT_KEY": "not base64!"}, ["TRELLIS_AUDIT_KEY"]),
    ],
)
def test_production_mode_does_not_start_with_a_missing_or_weak_secret(
    tmp_path: Path, variables: dict[str, str], named: list[str]
) -> None:
    """SEC-25: exit code other than 0 and one clear line that names the variable."""
    done = start(tmp_path, **PRODUCTION, **variables)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert all(name in done.stderr for name in named)
    assert "Traceback" not in done.stderr


def test_a_fault_never_repeats_the_secret(tmp_path: Path) -> None:
    """SEC-25, SEC-96: what is wrong with a key is said without the key."""
    weak = "hunter2hunter2"
    done = start(tmp_path, **PRODUCTION, SECRET_KEY=weak, TRELLIS_AUDIT_KEY=weak)
    assert weak not in done.stderr


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "KLAVIS_API_KEY"])
@pytest.mark.parametrize("key", ["sk\u2011proj\u2011abc", "sk-abc…", "sk-a\nsk-b", "schlüssel"])
def test_an_api_key_that_no_request_can_carry_is_refused(
    tmp_path: Path, name: str, key: str
) -> None:
    """REL-2173: the start said nothing, and each question ended with "Something went wrong on our side"."""
    done = start(tmp_path, **{name: key})
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert f"{name}: holds a character that no key has" in done.stderr
    assert key not in done.stderr


def test_blanks_around_an_api_key_are_no_part_of_it(tmp_path: Path) -> None:
    """REL-2173: a file of settings with Windows' line ends adds one."""
    keys = generate_keys()
    read = Environment.model_validate({**PRODUCTION, **keys, "OPENAI_API_KEY": " sk-abc\r\n"})
    assert read.openai_api_key is not None
    assert read.openai_api_key.get_secret_value() == "sk-abc"


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    """Ours: one start shows everything that is wrong."""
    done = start(tmp_path, TRELLIS_PORT="door", TRUSTED_PROXIES="nowhere", LOG_FORMAT="poem")
    assert done.returncode == 2
    assert all(name in done.stderr for name in ("TRELLIS_PORT", "TRUSTED_PROXIES", "LOG_FORMAT"))


def test_row_level_security_needs_postgresql(tmp_path: Path) -> None:
    """REL-710: SQLite has none, so the setting is refused instead of ignored."""
    done = start(tmp_path, TRELLIS_ROW_SECURITY="on")
    assert done.returncode == 2
    assert "TRELLIS_ROW_SECURITY needs PostgreSQL" in done.stderr


def test_half_of_single_sign_on_is_told(tmp_path: Path) -> None:
    """REL-3309: Settings of single sign-on that lack another one are refused at the start, all at once."""
    done = start(tmp_path, TRELLIS_SSO_ISSUER="https://login.example.org")
    assert done.returncode == 2
    assert "TRELLIS_SSO_CLIENT_ID is required when TRELLIS_SSO_ISSUER is set" in done.stderr
    assert "TRELLIS_SSO_DOMAINS is required when TRELLIS_SSO_ISSUER is set" in done.stderr
    done = start(tmp_path, TRELLIS_SSO_REQUIRED="on", TRELLIS_SSO_NAME="Acme")
    assert "TRELLIS_SSO_REQUIRED needs TRELLIS_SSO_ISSUER" in done.stderr


def test_production_mode_starts_with_good_secrets(tmp_path: Path) -> None:
    """SEC-25: the same start with generated keys works."""
    assert start(tmp_path, **PRODUCTION, **generate_keys()).returncode == 0


def test_the_first_keys_can_be_made_where_the_settings_lack_them(tmp_path: Path) -> None:
    """REL-2008: the command that makes what is missing was refused for lack of it. It makes no file, either."""
    done = subprocess.run(
        [sys.executable, "manage.py", "generate_keys"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "TRELLIS_DATA_DIR": str(tmp_path), **PRODUCTION},
        capture_output=True,
        text=True,
        check=True,
    )
    made = dict(line.split("=", 1) for line in done.stdout.splitlines())
    assert made.keys() == generate_keys().keys()
    assert list(tmp_path.iterdir()) == []


def test_the_embedded_default_makes_its_keys_once(tmp_path: Path) -> None:
    """SEC-25: fresh installs differ; a second start has the same keys; only the owner reads them."""
    first = load_or_create_keys(tmp_path / "one")
    assert first == load_or_create_keys(tmp_path / "one")
    assert first != load_or_create_keys(tmp_path / "two")
    mode = stat.S_IMODE((tmp_path / "one" / "keys.json").stat().st_mode)
    assert mode == 0o600


def test_the_settings_value_never_shows_a_secret() -> None:
    """SEC-96: printing the settings prints no key."""
    keys = generate_keys()
    shown = repr(Environment.model_validate({**PRODUCTION, **keys}))
    assert keys["SECRET_KEY"] not in shown
    assert keys["TRELLIS_AUDIT_KEY"] not in shown
    assert "material" not in shown


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("https://Chat.Example.org", "https://chat.example.org"),
        ("https://chat.example.org:443/", "https://chat.example.org"),
        ("http://localhost:8000", "http://localhost:8000"),
        ("http://[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_origins_are_compared_in_the_form_browsers_send(text: str, origin: str) -> None:
    """SEC-15."""
    assert normal_origin(text) == origin


@pytest.mark.parametrize(
    "text", ["chat.example.org", "https://*", "ftp://a", "https://u@a", "https://a/b", "null", ""]
)
def test_what_is_no_origin_is_refused(text: str) -> None:
    """SEC-15."""
    with pytest.raises(ValueError, match=r"origin|scheme"):
        normal_origin(text)


def test_a_database_never_gets_other_keys(tmp_path: Path) -> None:
    """SEC-721: without its keys.json an embedded installation does not start; nothing is made in its place."""
    (tmp_path / "trellis.sqlite3").write_bytes(b"rows")
    done = start(tmp_path)
    assert done.returncode == 2
    assert "keys.json that belongs to it" in done.stderr
    assert not (tmp_path / "keys.json").exists()
    keys = {name: value for name, value in generate_keys().items() if name in EACH_KEY}
    assert start(tmp_path, **keys).returncode == 0


EACH_KEY = ("SECRET_KEY", "TRELLIS_ENCRYPTION_KEYS", "TRELLIS_AUDIT_KEY")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"SECRET_KEY": "x"}'])
def test_a_damaged_file_of_keys_is_told(tmp_path: Path, content: str) -> None:
    """SEC-721: what is left of it stays as it is."""
    (tmp_path / "keys.json").write_text(content)
    done = start(tmp_path)
    assert done.returncode == 2
    assert "the file with the keys" in done.stderr
    assert (tmp_path / "keys.json").read_text() == content


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("REDIS_URL", "redis://:se/cret@host:6379/0", "write / as %2F"),
        ("REDIS_URL", "redis://host:door/0", "has a port"),
        ("DATABASE_URL", "postgres://trellis:se#cret@host/trellis", "has a port"),
        ("ALLOWED_HOSTS", "https://chat.example.org", "is not a host name"),
        ("ALLOWED_HOSTS", "chat.example.org:8000", "is not a host name"),
        ("TRELLIS_ARTIFACT_STORAGE", "S3Storage", "dotted path"),
        ("TRELLIS_AUDIT_REPORT_STORAGE", "no_such.S3Storage", "not installed"),
        ("TRELLIS_EPOCH_FILE", "/dev/null/epoch.json", "cannot be written"),
        ("TRELLIS_AUDIT_CHECKPOINT_FILE", "/", "cannot be written"),
        ("TRELLIS_SSO_ISSUER", "http://login.example.org", "is not an https address"),
        (
            "TRELLIS_SSO_ISSUER",
            "https://login.example.org/.well-known/openid-configuration",
            "must be the issuer's address alone",
        ),
        ("TRELLIS_SSO_DOMAINS", "example.org, everybody", "'everybody' is not a mail domain"),
    ],
)
def test_a_wrong_value_is_told_at_the_start_and_not_later(
    tmp_path: Path, name: str, value: str, message: str
) -> None:
    """REL-1589: one line names the variable; what may hold a password is not repeated."""
    done = start(tmp_path, **{name: value})
    assert done.returncode == 2
    assert f"{name}: " in done.stderr
    assert message in done.stderr
    assert "cret" not in done.stderr


@pytest.mark.parametrize(
    "hosts", ["*", ".example.org", "chat.example.org, 127.0.0.1,[::1]", "chat_1"]
)
def test_hosts_of_every_form_are_taken(tmp_path: Path, hosts: str) -> None:
    """REL-1589: names, patterns and addresses."""
    assert start(tmp_path, ALLOWED_HOSTS=hosts).returncode == 0
