"""A running Trellis (``manage.py up`` in a process of its own, with its demo) and a real Chromium."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    expect,
    sync_playwright,
)
from playwright.sync_api import Error as PlaywrightError

from config.bootstrap import PYTHON, ROOT, child_environment
from tests.e2e.accessibility import find_faults, find_overflow
from tests.e2e.chromium import BROWSER_OPTIONS, find_chromium
from tests.e2e.people import MEMBER, enter
from tests.e2e.pictures import check_picture
from tests.e2e.screens import DESK, MAKES_PICTURES, SCREENS, Screen, screens_of
from tests.extent import IS_FULL
from tests.fakes.authorization import Issuer
from tests.fakes.scripted_model import ScriptedModel

ARTIFACTS = ROOT / "test-artifacts"
START_SECONDS = 600
JOURNEY_SECONDS = 1800
"""How long a journey may take as a whole, for the first one with the start of the server."""
LONG = ("test_looks.py", "test_running.py")
PATIENCE_MS = 90_000
"""How long a page may take for anything; servers are started in the midst of it, on whatever machine."""
STOP_SECONDS = 120
CATALOGUE = "catalogue.json"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Journeys have many steps; each has its own patience, so what bounds the whole is only to end one that hangs."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.timeout(JOURNEY_SECONDS))
    # The longest ones first, so that no process is left with one of them alone at the end.
    items.sort(key=lambda item: item.path.name not in LONG)


_OF_THE_ADMIN = frozenset(
    {"test_admin_pages.py", "test_workspace_admin.py", "test_auditor.py", "test_row_actions.py"}
)
"""Files whose journeys go through the admin's widths and themes themselves, page by page."""


_FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember for the fixtures whether a journey came to its end."""
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
    return report


def has_failed(request: pytest.FixtureRequest) -> bool:
    """Whether the journey of a fixture did not come to its end."""
    return request.node.stash.get(_FAILED, default=False)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Choose the screens of a journey. The marker ``screens`` names those that it is about, and says why."""
    if "screen" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("screens")
    if marker is not None and not marker.kwargs.get("reason"):
        raise pytest.UsageError(f"{metafunc.definition.nodeid}: screens need a reason")
    path = metafunc.definition.path.name
    chosen = marker.args if marker else (DESK,) if path in _OF_THE_ADMIN else ()
    found = screens_of(f"{path}::{metafunc.definition.name}", chosen)
    metafunc.parametrize("screen", found, ids=[one.name for one in found], indirect=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningTrellis:
    """A server process and how to talk with it."""

    url: str
    data_dir: Path
    environment: dict[str, str]
    process: subprocess.Popen[str]
    shells: list[subprocess.Popen[str]] = field(default_factory=list)
    """The one that runs pieces of code, once one has run."""

    def shell(self, code: str) -> str:
        """Run code on the same data, as ``manage.py shell`` does, and give what it printed.

        Django is loaded once for all of them: that takes longer than what they do.

        Raises:
            AssertionError: it failed, with what it said.
        """
        if not self.shells:
            shell = subprocess.Popen(
                [str(PYTHON), "-m", "tests.e2e.second_shell"],
                cwd=ROOT,
                env={**self.environment, "DJANGO_SETTINGS_MODULE": "config.settings"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            self.shells.append(shell)
        shell = self.shells[0]
        assert shell.stdin is not None
        assert shell.stdout is not None
        shell.stdin.write(json.dumps(code) + "\n")
        shell.stdin.flush()
        body = json.loads(shell.stdout.readline())
        assert body["code"] == 0, body["err"]
        return str(body["out"])

    def manage(
        self, *arguments: str, timeout: float = STOP_SECONDS
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on the same data, as its owner would in a second terminal."""
        return subprocess.run(
            [str(PYTHON), "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )


def start_trellis(
    data_dir: Path, port: int, *options: str, more: Mapping[str, str] | None = None
) -> RunningTrellis:
    """Start ``manage.py up`` and wait until it is ready; fails with its output if it does not come up."""
    environment = {
        **child_environment(),
        "TRELLIS_DATA_DIR": str(data_dir),
        "TRELLIS_OLLAMA_URL": "off",
        "LOG_LEVEL": "INFO",
    }
    for name in (
        *(
            "DATABASE_URL",
            "REDIS_URL",
            "OPENAI_API_KEY",
            "OPENAI_BASE_URL",
            "DJANGO_SETTINGS_MODULE",
        ),
        *("SECRET_KEY", "TRELLIS_ENCRYPTION_KEYS", "TRELLIS_AUDIT_KEY", "TRELLIS_PUBLIC_ORIGINS"),
        "TRELLIS_PORT",
    ):
        environment.pop(name, None)
    # The journeys' own MCP server listens on this machine.
    environment["TRELLIS_ALLOWED_NETWORKS"] = "127.0.0.0/8"
    # What the catalogue offers besides; a journey writes it.
    environment["TRELLIS_CATALOGUE_FILE"] = str(data_dir / CATALOGUE)
    environment |= more or {}
    data_dir.mkdir(parents=True, exist_ok=True)
    log = (data_dir / "server.log").open("w")
    process = subprocess.Popen(
        [sys.executable, "manage.py", "up", "--port", str(port), *options],
        cwd=ROOT,
        env=environment,
        stdout=log,
        stderr=subprocess.STDOUT,
        text=True,
    )
    running = RunningTrellis(
        url=f"http://localhost:{port}", data_dir=data_dir, environment=environment, process=process
    )
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"{running.url}/readyz", timeout=2) as answer:
                if answer.status == 200:
                    return running
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)  # the one place where nothing can be awaited: a foreign process starts
    process.kill()
    pytest.fail("manage.py up did not become ready:\n" + (data_dir / "server.log").read_text())


def stop_trellis(running: RunningTrellis, how: signal.Signals = signal.SIGTERM) -> int:
    """Ask the server to stop and give its exit code; fails if it does not."""
    for shell in running.shells:
        shell.communicate(timeout=STOP_SECONDS)
    running.shells.clear()
    running.process.send_signal(how)
    try:
        return running.process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        running.process.kill()
        pytest.fail("manage.py up did not stop")


@pytest.fixture(scope="session")
def provider() -> Iterator[Issuer]:
    """The identity provider that the server knows. Whoever is at its page presses a button."""
    issuer = Issuer()
    issuer.serves = {"openid"}
    issuer.id_tokens = True
    issuer.asks = True
    yield issuer
    issuer.stop()


@pytest.fixture(scope="session")
def trellis(tmp_path_factory: pytest.TempPathFactory, provider: Issuer) -> Iterator[RunningTrellis]:
    """One server with the demo content, for all journeys."""
    port = os.environ["TRELLIS_PORT"]
    provider.add_client("trellis", "", f"http://localhost:{port}/accounts/sso/callback/")
    single_sign_on = {
        "TRELLIS_SSO_ISSUER": provider.url,
        "TRELLIS_SSO_CLIENT_ID": "trellis",
        "TRELLIS_SSO_NAME": "Acme",
        "TRELLIS_SSO_DOMAINS": "sso.example",
    }
    data_dir = tmp_path_factory.mktemp("trellis") / "data"
    running = start_trellis(data_dir, int(port), more=single_sign_on)
    yield running
    ARTIFACTS.mkdir(exist_ok=True)
    worker = os.environ.get("PYTEST_XDIST_WORKER", "alone")
    shutil.copy(running.data_dir / "server.log", ARTIFACTS / f"server-{worker}.log")
    stop_trellis(running)


FORGET = """
from chat.models import Conversation
Conversation.objects.across_workspaces().filter(title__contains="{words}").delete()
"""


def forget_chats(trellis: RunningTrellis, words: str) -> None:
    """Leave no chat with these words in its title, where a journey counts them and runs on several screens."""
    trellis.shell(FORGET.format(words=words))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all journeys; each has contexts of its own."""
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=find_chromium(), args=BROWSER_OPTIONS, headless=True
        )
        yield launched
        launched.close()


def _keep_picture(page: Page, name: str) -> None:
    """For people who look. The lossless kind takes the browser three times as long."""
    ARTIFACTS.mkdir(exist_ok=True)
    page.screenshot(path=ARTIFACTS / f"{name}.jpg", type="jpeg", quality=80)


def _keep_pictures_of_failure(contexts: list[BrowserContext], name: str) -> None:
    """What was on all pages of a journey when it failed, as far as the browser still shows it."""
    pages = [page for context in contexts for page in context.pages]
    for number, page in enumerate(pages, 1):
        page.set_default_timeout(10_000)
        with suppress(PlaywrightError):
            _keep_picture(page, f"failed-{name}-{number}")


def last_faults(context: BrowserContext) -> list[str]:
    """Give what is wrong with the last page of a journey: too wide, or what axe finds."""
    pages = [page for page in context.pages if urlsplit(page.url).hostname == "localhost"]
    if not pages:
        return []
    page = pages[-1]
    found = []
    if pixels := find_overflow(page):
        found.append(f"{page.url}: {pixels} px too wide")
    # Colours take axe most of its time. A usual run looks at those of each page once, in test_looks.
    if report := find_faults(page, without_colours=not IS_FULL):
        found.append(f"{page.url}: {report}")
    return found


NewContext = Callable[..., BrowserContext]

# What the browser says of itself and not of our pages.
_HARMLESS = re.compile(
    "^Failed to load resource: the server responded with a status of 4"
    "|net::ERR_INTERNET_DISCONNECTED"  # a journey has switched the network off
)


@pytest.fixture
def screen(request: pytest.FixtureRequest) -> Screen:
    """The screen that the journey runs on."""
    return getattr(request, "param", SCREENS[DESK])


@pytest.fixture
def new_context(
    browser: Browser, trellis: RunningTrellis, screen: Screen, request: pytest.FixtureRequest
) -> Iterator[NewContext]:
    """Make a person's own browser profile; an error in a console fails the test at its end.

    It has the journey's screen, unless the journey gives it a size of its own.
    """
    contexts: list[BrowserContext] = []
    shown: list[BrowserContext] = []
    errors: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type == "error" and not _HARMLESS.search(message.text):
            errors.append(f"{message.text} ({message.location.get('url', '')})")

    def make(**options: object) -> BrowserContext:
        has_its_own = "viewport" in options
        if not request.node.get_closest_marker("service_worker"):
            # It fetches what the page may need later, and hides from us some of what the page asks for.
            options = {"service_workers": "block", **options}
        if not has_its_own:
            options = {**screen.options(), **options}
        context = browser.new_context(base_url=trellis.url, **options)  # type: ignore[arg-type]
        if not has_its_own:
            shown.append(context)
        context.set_default_timeout(PATIENCE_MS)
        context.on("console", note)
        context.on("weberror", lambda error: errors.append(str(error.error)))
        contexts.append(context)
        return context

    yield make
    if has_failed(request):
        _keep_pictures_of_failure(contexts, request.node.originalname)
    if has_failed(request) or request.path.name in _OF_THE_ADMIN:
        shown.clear()
    found = [fault for one in shown for fault in last_faults(one)]
    for context in contexts:
        context.close()
    assert not found, "on the last page:\n" + "\n".join(found)
    assert not errors, "errors in the browser's console:\n" + "\n".join(errors)


@pytest.fixture
def page(new_context: NewContext) -> Page:
    """A page of a person who is not signed in."""
    return new_context().new_page()


@pytest.fixture
def member(page: Page) -> Page:
    """A page of the demo's member, signed in."""
    enter(page, MEMBER)
    return page


ADD_PROVIDER = """
from chat.models import ModelProvider
from workspaces.models import Workspace
ModelProvider.objects.create(
    workspace=Workspace.objects.get(slug="demo"), name="Compared", base_url="{url}", default_model="quick-model")
"""


@pytest.fixture(scope="module")
def quick(trellis: RunningTrellis) -> Iterator[ScriptedModel]:
    """A second provider of the demo workspace, for the journeys of one file."""
    model = ScriptedModel()
    trellis.shell(ADD_PROVIDER.format(url=model.base_url))
    yield model
    trellis.shell(
        "from chat.models import ModelProvider\n"
        "ModelProvider.objects.across_workspaces().filter(name='Compared').delete()"
    )
    model.stop()


ADD_BUD = """
from chat.models import Bud, ModelProvider
provider = ModelProvider.objects.across_workspaces().get(name="Compared")
notes = Bud.objects.across_workspaces().get(slug="notes", workspace=provider.workspace)
Bud.objects.create(workspace=provider.workspace, name="Keeper", slug="keeper", provider=provider,
    model="quick-model", mcp_config=notes.mcp_config)
"""


@pytest.fixture(scope="module")
def keeper(trellis: RunningTrellis, quick: ScriptedModel) -> Iterator[ScriptedModel]:
    """The same model, as that of a bud with the tools of the notes."""
    trellis.shell(ADD_BUD)
    yield quick
    trellis.shell(
        "from chat.models import Bud, Conversation\n"
        "Conversation.objects.across_workspaces().filter(bud__slug='keeper').delete()\n"
        "Bud.objects.across_workspaces().filter(slug='keeper').delete()"
    )


PICTURES = {
    "approval": "chat",
    "mention": "mention",
    "files": "files",
    "waiting-list-phone-dark": "phone",
    "servers-desktop-light": "servers",
    "checks-plan": "checks",
    "audit-desktop-light": "log",
    "audit-detail": "call",
    "audit-reports-desktop-dark": "reports",
    "admin": "admin",
}
"""Pictures of the journeys that docs/tour.md and the README show, by the names that they have there."""


def screenshot(page: Page, name: str) -> None:
    """Compare key screens with their pictures in the repository.

    A run for a release, and one with ``TRELLIS_PICTURES``, keeps a picture of each page among its artifacts. With
    ``TRELLIS_PICTURES=1`` those that the docs show are written there too. Fonts with emoji have to be installed.
    """
    if IS_FULL or MAKES_PICTURES:
        _keep_picture(page, name)
    if name in PICTURES and os.environ.get("TRELLIS_PICTURES") == "1":
        page.screenshot(path=ROOT / "docs" / "images" / f"{PICTURES[name]}.png")
    check_picture(page, name)
