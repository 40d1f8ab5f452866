"""`python -m bench.pages`, called by `manage.py bench --pages`: what the chat weighs, and how soon and smoothly it works.

Chromium runs beside the server on the same machine, with an empty cache for each visit. The floor of a time is a page of
ours without a script, from the same server.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from playwright.sync_api import Browser, Page, sync_playwright

from bench.growth import add_messages, make_place
from bench.installation import forms_of, own_or_none, prepare
from bench.processes import free_port
from bench.results import Row, part, write_table
from tests.e2e.chromium import BROWSER_OPTIONS, find_chromium

if TYPE_CHECKING:
    from bench.growth import Place

VISITS: Final = 7
MESSAGES: Final = 10_000
SCROLL_SECONDS: Final = 8
_PATIENCE_MS: Final = 60_000

# Counted by the page itself, since asking from outside takes longer than what is measured.
_NOTE_USABLE: Final = """
const look = () => {
  const field = document.querySelector("#composer-text:not([disabled])");
  const content = document.querySelector(".bud-card, .message-group > article");
  if (field && content) window.usableAt = performance.now();
  else requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""
_WAIT_USABLE: Final = """
async (patience) => {
  while (!window.usableAt) {
    if (performance.now() > patience) throw new Error("The page cannot be used.");
    await new Promise((done) => setTimeout(done, 20));
  }
  return window.usableAt;
}
"""
_SCROLL_UP: Final = """
async (seconds) => {
  const box = document.querySelector(".chat-scroll");
  const frames = [];
  let before = performance.now();
  let isOver = false;
  const tick = (now) => {
    frames.push(now - before);
    before = now;
    if (!isOver) requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
  const end = performance.now() + seconds * 1000;
  while (performance.now() < end) {
    box.scrollTop = Math.max(1, box.scrollTop - 150);
    await new Promise((done) => setTimeout(done, 16));
  }
  isOver = true;
  return frames.slice(1);
}
"""


class Visits:
    """One person's visits, each with an empty cache."""

    def __init__(self, browser: Browser, origin: str, cookie: str) -> None:
        name, _, value = cookie.partition("=")
        self._browser, self._origin = browser, origin
        self._cookie: Any = {"name": name, "value": value, "url": origin}

    def visit(self, path: str, look: Callable[[Page], Any]) -> Any:
        """Open a page as somebody who was never here, and look at it."""
        # The worker would fetch files beside the page, for later.
        context = self._browser.new_context(base_url=self._origin, service_workers="block")
        context.set_default_timeout(_PATIENCE_MS)
        context.add_cookies([self._cookie])
        try:
            page = context.new_page()
            page.add_init_script(_NOTE_USABLE)
            self._weight = 0.0
            network = context.new_cdp_session(page)
            network.send("Network.enable")
            network.on("Network.loadingFinished", self._weigh)
            page.goto(path)
            return look(page)
        finally:
            context.close()

    def _weigh(self, event: dict[str, Any]) -> None:
        self._weight += float(event["encodedDataLength"])

    def usable_after(self, path: str) -> float:
        """Milliseconds from the click to a page with its content and a field that takes words: the median of some visits."""
        return float(statistics.median(self.visit(path, _usable_at) for _ in range(VISITS)))

    def shown_after(self, path: str) -> float:
        """Milliseconds to the end of loading, of a page that needs no script."""
        taken = (
            self.visit(path, lambda page: page.evaluate("performance.now()")) for _ in range(VISITS)
        )
        return float(statistics.median(taken))

    def weight_of(self, path: str) -> float:
        """Kilobytes that come over the wire on a first visit, until nothing more comes."""

        def look(page: Page) -> float:
            _usable_at(page)
            page.wait_for_load_state("networkidle")
            return self._weight / 1000

        return float(self.visit(path, look))

    def frames_of(self, path: str) -> list[float]:
        """Milliseconds of each frame while somebody scrolls up, and older messages come."""

        def look(page: Page) -> list[float]:
            _usable_at(page)
            found: list[float] = page.evaluate(_SCROLL_UP, SCROLL_SECONDS)
            return found

        return list(self.visit(path, look))


def _usable_at(page: Page) -> float:
    return float(page.evaluate(_WAIT_USABLE, _PATIENCE_MS))


def measure(visits: Visits, place: Place) -> list[Row]:
    """Every line of the table."""
    home = f"/w/{place.workspace.slug}/"
    long, short = (f"{home}c/{one.pk}/" for one in (place.long, place.small))
    floor = visits.shown_after("/offline/")
    frames = visits.frames_of(long)
    subject = f"a conversation of {MESSAGES:,} messages"
    return [
        Row("first visit of the chat, over the wire", 0.0, visits.weight_of(home), "kB", "180 kB"),
        Row("the chat can be used", floor, visits.usable_after(home), "ms", "1,000 ms"),
        Row("a short conversation can be used", floor, visits.usable_after(short), "ms", "-"),
        Row(f"{subject} can be used", floor, visits.usable_after(long), "ms", "1,000 ms"),
        Row(f"{subject}, scrolled: p50 of frames", 0.0, part(frames, 0.5), "ms", "-"),
        Row(f"{subject}, scrolled: p99 of frames", 0.0, part(frames, 0.99), "ms", "50 ms"),
        Row(f"{subject}, scrolled: longest frame", 0.0, max(frames), "ms", "50 ms"),
    ]


def main() -> int:
    """Measure, and print one line for each measure."""
    with (
        tempfile.TemporaryDirectory(prefix="trellis-pages-") as folder,
        own_or_none() as database_url,
    ):
        prepare(folder, database_url)
        port = free_port()
        origin = f"http://localhost:{port}"
        os.environ["TRELLIS_PUBLIC_ORIGINS"] = origin  # for the server's process
        from bench.serving import serving, sign_in

        place = make_place()
        add_messages(place.long, MESSAGES - 2)
        cookie = sign_in(place.owner)
        with sync_playwright() as playwright, serving("config.asgi:application", port):
            browser = playwright.chromium.launch(
                executable_path=find_chromium(), args=BROWSER_OPTIONS, headless=True
            )
            rows = measure(Visits(browser, origin, cookie), place)
            browser.close()
    form = f"pages, {forms_of(database_url)}"
    sys.stdout.write(f"{form}\n")
    for row in rows:
        sys.stdout.write(f"{row.as_text()}\n")
    if "--write" in sys.argv:
        write_table(form, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
