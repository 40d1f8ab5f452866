"""Image, compose file, chart and units: that they fit together, name real settings, and give a process no more than it needs."""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import kubernetes_validate
import pytest
import yaml
from django.test import Client

from config.bootstrap import VENV, child_environment
from config.env import ROOT, Environment
from mcp_servers.registry.catalogue.platform_source import shipped_servers
from tests.deploy.packages import DEPLOY, OURS, command_of, services
from tests.extent import IS_FULL
from tests.fakes.mcp_server import Listening, Receive, Scope, Send
from tests.ports import free_port

CHART = DEPLOY / "helm" / "trellis"
MIGRATE = ["python", "manage.py", "migrate"]
KUBERNETES = "1.29"
"""The oldest that the chart says it works with."""
SETTINGS = {str(field.validation_alias) for field in Environment.model_fields.values()}
SECRETS = {
    *("SECRET_KEY", "TRELLIS_ENCRYPTION_KEYS", "TRELLIS_AUDIT_KEY", "TRELLIS_AUDIT_SIGNING_KEYS"),
    *("TRELLIS_PUSH_KEYS", "DATABASE_URL", "REDIS_URL", "EMAIL_HOST_PASSWORD"),
}


def rendered(*options: str) -> list[dict[str, Any]]:
    """The chart as the cluster gets it."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        pytest.skip("Helm's package has no program for this machine")
    helm = str(VENV / "bin" / "helm")
    done = subprocess.run(
        [helm, "template", "trellis", str(CHART), *options],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=child_environment(),
    )
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one]


def pods(documents: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Name of a workload → the specification of its pods."""
    return {
        one["metadata"]["name"]: one["spec"]["template"]["spec"]
        for one in documents
        if one["kind"] in {"Deployment", "Job"}
    }


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--set", "server.autoscaling.enabled=false,ingress.enabled=false"),
        ("--set", "storage.existingClaim=mine,networkPolicy.enabled=false"),
        ("--set", "image.tag=2.0,imagePullSecrets[0].name=pull,ingress.className=nginx"),
    ],
)
def test_the_chart_is_what_kubernetes_takes(options: tuple[str, ...]) -> None:
    """REL-395: every object against the schema of the oldest version that is promised, unknown fields refused."""
    for document in rendered(*options):
        kubernetes_validate.validate(document, KUBERNETES, strict=True)


def test_the_chart_asks_for_what_the_product_needs_and_no_more() -> None:
    """SEC-332: not root, nothing to write but data and scratch, no token, no secret in clear; probes and room to drain."""
    documents = rendered()
    kinds = {one["kind"] for one in documents}
    assert kinds >= {
        *("Deployment", "Service", "Job", "PodDisruptionBudget", "HorizontalPodAutoscaler"),
        *("Ingress", "NetworkPolicy", "PersistentVolumeClaim"),
    }
    assert "Secret" not in kinds
    for name, pod in pods(documents).items():
        assert pod["automountServiceAccountToken"] is False, name
        assert pod["securityContext"]["runAsNonRoot"] is True, name
        [container] = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {one["name"] for one in container["env"]} <= SETTINGS - SECRETS
        assert container["envFrom"] == [{"secretRef": {"name": "trellis"}}]
        assert {one["mountPath"] for one in container["volumeMounts"]} == {"/data", "/tmp"}
        assert container["resources"]["limits"]["memory"]
        drain = next(one["value"] for one in container["env"] if one["name"] == "DRAIN_SECONDS")
        waits = container.get("lifecycle", {"preStop": {"exec": {"command": ["sleep", "0"]}}})
        before = float(waits["preStop"]["exec"]["command"][1])
        assert pod["terminationGracePeriodSeconds"] > before + float(drain) + 2
    server = pods(documents)["trellis-server"]["containers"][0]
    assert server["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert server["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert server["lifecycle"]["preStop"]["exec"]["command"] == ["sleep", "5"]


def test_image_compose_file_chart_and_units_run_the_same_processes() -> None:
    """REL-395: one command for each kind of process, and each of its programs is in the environment."""
    chart = {name: pod["containers"][0]["command"] for name, pod in pods(rendered()).items()}
    image = json.loads(_containerfile("CMD")[-1])
    server = command_of("server-1")
    assert image == server == command_of("server-2") == chart["trellis-server"]
    assert command_of("worker") == chart["trellis-worker"]
    assert command_of("scheduler") == chart["trellis-scheduler"]
    assert chart["trellis-migrate"] == MIGRATE
    for name in OURS:
        assert (VENV / "bin" / command_of(name)[0]).exists(), name
    units = {path.stem.rstrip("@"): _exec_start(path) for path in DEPLOY.glob("systemd/*.service")}
    assert units["trellis-server"] == [*server[:1], "-b", "127.0.0.1", "-p", "%i", *server[5:]]
    assert units["trellis-worker"] == command_of("worker")
    assert units["trellis-scheduler"][:4] == command_of("scheduler")[:4]


def test_the_compose_file_migrates_before_each_process(tmp_path: Path) -> None:
    """REL-3112: as a service of its own it would end, and podman-compose starts nothing that depends on it then."""
    for name in OURS:
        assert set(services()[name]["depends_on"]) == {"postgres", "redis"}, name
        assert services()[name]["entrypoint"] == services()["server-1"]["entrypoint"], name
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho python $@\n")
    python.chmod(0o700)
    *shell, script = services()["server-1"]["entrypoint"]
    done = subprocess.run(
        [*shell, script.replace("$$", "$"), "echo", "the process", "starts"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "python manage.py migrate --verbosity 0\nthe process starts\n"


def test_units_replace_servers_one_by_one() -> None:
    """REL-1623: each migrates before it starts; REL-2323: and a server's start ends once it serves."""
    for path in DEPLOY.glob("systemd/*.service"):
        unit = _unit(path)
        migrate = unit["Service"]["ExecStartPre"].removeprefix("/opt/trellis/.venv/bin/")
        assert migrate.split() == MIGRATE
        waits = "/readyz" in unit["Service"].get("ExecStartPost", "")
        assert waits == (path.stem == "trellis-server@")
        # Otherwise programs of tool calls would be told to end with the server that waits for them.
        assert unit["Service"]["KillMode"] == "mixed"
        assert (
            int(unit["Service"]["TimeoutStopSec"])
            > Environment.model_fields["drain_seconds"].default + 2
        )


def test_a_server_that_dies_while_it_starts_is_not_waited_for() -> None:
    """REL-2323: else systemd never starts it anew. It is asked on this machine, whatever proxy the settings name."""
    line = _unit(DEPLOY / "systemd" / "trellis-server@.service")["Service"]["ExecStartPost"]

    def wait(port: int, pid: int) -> int:
        process = {"MAINPID": str(pid), "http_proxy": "http://127.0.0.1:9"}
        words = shlex.split(line.replace("%i", str(port)))
        return subprocess.run(
            words, cwd=ROOT, env={**os.environ, **process}, check=False
        ).returncode

    with subprocess.Popen(["true"]) as gone:
        pass
    assert wait(free_port(), gone.pid) == 1
    listening = Listening(_ready)
    assert wait(urlsplit(listening.origin).port or 0, os.getpid()) == 0
    listening.stop()


async def _ready(scope: Scope, receive: Receive, send: Send) -> None:
    """A process that is ready."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"{}"})


def test_units_try_again_until_the_database_is_there() -> None:
    """REL-2324: what a unit requires is tried once, and a start that is tried too often is given up."""
    for path in DEPLOY.glob("systemd/*.service"):
        unit = _unit(path)
        assert "Requires" not in unit["Unit"]
        assert unit["Unit"]["StartLimitIntervalSec"] == "0"
        assert unit["Service"]["Restart"] == "always"
        assert unit["Service"]["TimeoutStartSec"] == "infinity"  # migrations may take long


def test_units_put_up_the_walls_of_the_image() -> None:
    """SEC-951: no rights of root, devices or kernel settings; others on the machine do not read the data folder."""
    for path in DEPLOY.glob("systemd/*.service"):
        service = _unit(path)["Service"]
        assert service["CapabilityBoundingSet"] == ""
        assert service["ProtectSystem"] == "strict"
        assert (service["StateDirectoryMode"], service["UMask"]) == ("0700", "0077")
        assert {name for name, value in service.items() if value == "yes"} >= {
            *("NoNewPrivileges", "PrivateDevices", "PrivateTmp", "ProtectHome"),
            *("ProtectControlGroups", "ProtectKernelModules", "ProtectKernelTunables"),
        }


def test_sample_proxies_keep_nobody_from_servers_that_are_well() -> None:
    """REL-1622: "http2 on" stops nginx before 1.25.1, and one failed request must not count against a server."""
    nginx = re.sub(r"#.*", "", (DEPLOY / "proxies" / "nginx.conf").read_text())
    assert "http2 on" not in nginx
    upstream = re.findall(r"^\s+server [\d.:]+ (.+);$", nginx, re.MULTILINE)
    assert upstream == ["max_fails=0", "max_fails=0"]
    assert "proxy_buffering off;" in nginx
    caddy = (DEPLOY / "proxies" / "Caddyfile").read_text()
    assert "lb_try_duration" in caddy
    # Daphne ends idle connections after a minute; a proxy must not send its next request into that.
    for text, kept in ((nginx, r"keepalive_timeout (\d+)s"), (caddy, r"keepalive (\d+)s")):
        found = re.search(kept, text)
        assert found is not None
        assert int(found[1]) < 60


def test_people_get_a_page_that_tries_again_while_no_server_answers() -> None:
    """REL-2681: of both samples, and nothing stores it."""
    nginx, caddy = ((DEPLOY / "proxies" / name).read_text() for name in ("nginx.conf", "Caddyfile"))
    [page] = re.findall(r"return 503 '(.+)';", nginx)
    assert re.findall(r"respond `(.+)` 503", caddy) == [page]
    assert '<meta http-equiv="refresh" content="5">' in page
    assert "error_page 502 504 =503 @away;" in nginx
    for sample in (nginx, caddy):
        assert re.search(r"Retry-After 5\b", sample)
        assert re.search(r"Cache-Control no-store\b", sample)


def test_the_proxy_of_the_sample_logs_no_address_that_lets_somebody_in() -> None:
    """SEC-1190: while no server answered, invitations and links in mails stood in nginx's log of errors."""
    nginx = (DEPLOY / "proxies" / "nginx.conf").read_text()
    served = nginx[nginx.index("listen 443") :]
    assert re.findall(r"^    (access_log|error_log) .*?(\w+);$", served, re.MULTILINE) == [
        ("access_log", "off"),
        ("error_log", "crit"),
    ]


def test_proxies_and_the_chart_let_the_largest_import_pass() -> None:
    """REL-2325: what stands before a cluster refuses bodies of more than 1 MB unless it is told."""
    most = f"{Environment.model_fields['import_max_bytes'].default // 2**20 + 1}m"
    assert f"client_max_body_size {most};" in (DEPLOY / "proxies" / "nginx.conf").read_text()
    [ingress] = [one for one in rendered() if one["kind"] == "Ingress"]
    assert ingress["metadata"]["annotations"] == {
        "nginx.ingress.kubernetes.io/proxy-body-size": most
    }


def test_the_compose_file_gives_ours_no_more_than_they_need() -> None:
    """SEC-332: the same walls as the chart, and only settings that exist."""
    for name in OURS:
        service = services()[name]
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert set(service["environment"]) <= SETTINGS, name
    assert [name for name in services() if "ports" in services()[name]] == ["caddy"]
    example = (DEPLOY / ".env.example").read_text()
    named = set(re.findall(r"^(\w+)=", example, re.MULTILINE))
    asked = set(re.findall(r"\$\{(\w+)", (DEPLOY / "compose.yaml").read_text()))
    assert asked <= named
    assert named - SETTINGS == asked


def test_probes_are_answered_whatever_host_they_name(client: Client, db: None) -> None:
    """REL-395: a probe asks the pod's own address, which no setting names."""
    assert client.get("/healthz", headers={"host": "10.0.0.7:8000"}).status_code == 200
    assert client.get("/readyz", headers={"host": "10.0.0.7:8000"}).status_code == 200


def test_the_image_is_not_root_and_says_how_it_is() -> None:
    """SEC-332: the steps' order matters: what comes after USER runs without rights."""
    assert _containerfile("USER") == ["10001:10001"]
    [check] = _containerfile("HEALTHCHECK")
    assert "/healthz" in check
    # Podman builds images that keep no check, so the compose file has the same one.
    command = services()["server-1"]["healthcheck"]["test"]
    assert check.endswith(f"CMD {json.dumps(command[1:])}")
    assert not set(_ignored()) & {"config", "chat", "audit", "mcp_servers", "workspaces", "deploy"}


def test_programs_of_the_catalogue_find_node_and_uv_in_the_image(tmp_path: Path) -> None:
    """REL-2726: where entries name them, on the search path that programs have, without the platform's environment."""
    [step] = [one for one in _containerfile("RUN") if one.startswith("ln -s ")]
    assert step.endswith(" /usr/bin/")
    there = step.replace("/app/.venv", str(VENV)).replace("/usr/bin/", str(tmp_path))
    subprocess.run(["/bin/sh", "-c", there], check=True)
    home = {"HOME": str(tmp_path), "PATH": f"{tmp_path}:/bin"}
    for name in ("npx", "uvx"):
        done = subprocess.run(
            [tmp_path / name, "--version"], env=home, capture_output=True, text=True, check=True
        )
        assert re.search(r"\d+\.\d+", done.stdout)
    recipes = (one.program for one in shipped_servers().servers if one.program is not None)
    assert {one.command for one in recipes} <= {"python", "/usr/bin/node", "/usr/bin/npx"}


@pytest.mark.skipif(not IS_FULL, reason="runs with test --full")
def test_every_step_of_the_image_works_in_a_clean_folder(tmp_path: Path) -> None:
    """REL-395: without a container engine: the files that are copied, then each RUN of the first stage."""
    app = tmp_path / "app"
    shutil.copytree(ROOT, app, ignore=shutil.ignore_patterns(*_ignored(), ".git"), symlinks=True)
    first_stage = (DEPLOY / "Containerfile").read_text().split("\nFROM ")[1]
    steps = re.findall(r"^RUN (.+)$", first_stage, re.MULTILINE)
    assert len(steps) > 1
    # The machine's ways to the package indexes, and nothing of these tests.
    ours = SETTINGS | {"DJANGO_SETTINGS_MODULE"}
    outside = {name: value for name, value in os.environ.items() if name not in ours}
    for step in steps:
        done = subprocess.run(
            ["/bin/sh", "-c", step],
            cwd=app,
            env=outside,
            capture_output=True,
            text=True,
            timeout=1_500,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    step_output = subprocess.run(
        [app / ".venv" / "bin" / "python", "manage.py", "check"],
        cwd=app,
        env={**outside, "TRELLIS_DATA_DIR": str(tmp_path / "data")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert step_output.returncode == 0, step_output.stderr
    assert (app / "staticfiles" / "web" / "manifest.json").exists()


def _containerfile(word: str) -> list[str]:
    text = (DEPLOY / "Containerfile").read_text().replace("\\\n", " ")
    return re.findall(rf"^{word} (.+)$", text, re.MULTILINE)


def _ignored() -> list[str]:
    lines = (ROOT / ".containerignore").read_text().splitlines()
    return [line.removeprefix("**/") for line in lines if line]


def _unit(path: Path) -> ConfigParser:
    unit = ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # names of units have capitals
    unit.read(path)
    return unit


def _exec_start(path: Path) -> list[str]:
    unit = _unit(path)
    program, *arguments = unit["Service"]["ExecStart"].split()
    assert program.startswith("/opt/trellis/.venv/bin/")
    assert unit["Service"]["NoNewPrivileges"] == "yes"
    return [Path(program).name, *arguments]
