{% comment %} Context: kept (addresses; the first is the page to show where there is nothing else), release, login, logout (paths), longest_ms (how long a person's page is shown after their last visit), icon (of notifications). {% endcomment %}const KEPT = [{% for address in kept %}"{{ address|escapejs }}"{% if not forloop.last %}, {% endif %}{% endfor %}];
const ICON = "{{ icon|escapejs }}";
const LOGIN = "{{ login|escapejs }}";
const LOGOUT = "{{ logout|escapejs }}";
// Public files of one release.
const FILES = "trellis-files-{{ release }}";
// Pages of one person for one release; the person's id follows.
const SHELLS = "trellis-shell-";
const OURS = `${SHELLS}{{ release }}-`;
const CHAT = /^(\/w\/[^/]+\/)(?:c\/[0-9a-f-]{36}\/)?$/;
const A_DAY = 24 * 3600 * 1000;
const LONGEST = {{ longest_ms|stringformat:"d" }};

addEventListener("install", (event) => {
  event.waitUntil(caches.open(FILES).then((cache) => cache.addAll(KEPT)).then(() => skipWaiting()));
});

addEventListener("activate", (event) => {
  event.waitUntil(
    Promise.all([
      clients.claim(),
      registration.navigationPreload?.enable(),
      // A page of the release before would ask for files that are gone.
      drop((name) => name !== FILES && !name.startsWith(OURS)),
    ]),
  );
});

addEventListener("fetch", (event) => {
  const { request } = event;
  const { pathname } = new URL(request.url);
  if (request.mode === "navigate" && request.method === "GET") {
    event.respondWith(open(event, pathname));
  } else if (request.mode === "navigate" && pathname === LOGOUT) {
    event.waitUntil(forgetShells());
  } else if (KEPT.includes(pathname)) {
    event.respondWith(
      fetch(request).catch(async () => (await caches.match(request, { ignoreSearch: true, ignoreVary: true })) || Response.error()),
    );
  }
});

async function open(event, pathname) {
  let answer;
  try {
    answer = (await event.preloadResponse) || (await fetch(event.request));
  } catch {
    return (await shellOf(pathname)) || (await caches.match(KEPT[0])) || Response.error();
  }
  // Whoever sees the sign-in page is nobody's guest any more.
  if (pathname === LOGIN && answer.ok) await forgetShells();
  const home = CHAT.exec(pathname)?.[1];
  const isRefused = answer.type === "opaqueredirect" || (answer.status >= 400 && answer.status < 500);
  if (home && isRefused) for (const cache of await shells()) await cache.delete(home);
  return answer;
}

async function drop(isOld) {
  const names = await caches.keys();
  await Promise.all(names.filter(isOld).map((name) => caches.delete(name)));
}

// Counts what was forgotten: what was asked for before must not be kept after.
let forgotten = 0;

async function forgetShells(except = "") {
  forgotten += 1;
  await drop((name) => name.startsWith(SHELLS) && name !== except);
}

async function shells() {
  const names = (await caches.keys()).filter((name) => name.startsWith(OURS));
  return Promise.all(names.map((name) => caches.open(name)));
}

// The chat's page for a place in it, or the way to the workspace that was open last.
async function shellOf(pathname) {
  const home = CHAT.exec(pathname)?.[1];
  for (const cache of await shells()) {
    const last = await cache.match("/");
    if (pathname === "/" && last) return Response.redirect(await last.text());
    const found = home && (await cache.match(home));
    if (found && Date.now() - Number(found.headers.get("X-Kept-At")) < LONGEST) return found;
  }
}

addEventListener("message", (event) => {
  const { type, home, person } = event.data ?? {};
  if (type === "keep" && CHAT.test(home)) event.waitUntil(keepShell(home, String(person)));
});

// Keep a workspace's page for its person: without a conversation and without a token, and only one of this release.
async function keepShell(home, person) {
  const name = OURS + person;
  await forgetShells(name);
  const before = forgotten;
  const cache = await caches.open(name);
  await cache.put("/", new Response(home));
  const known = await cache.match(home);
  if (known && Date.now() - Number(known.headers.get("X-Kept-At")) < A_DAY) return;
  const answer = await fetch(`${home}shell/`, { cache: "no-store", redirect: "error" }).catch(() => null);
  if (!answer?.ok) return;
  const text = await answer.text();
  const files = text.match(/\/static\/web\/[\w.-]+\.(?:js|css)/g) ?? [];
  if (before !== forgotten || !files.every((file) => KEPT.includes(file))) return;
  const headers = new Headers(answer.headers);
  headers.set("X-Kept-At", String(Date.now()));
  await cache.put(home, new Response(text, { headers }));
}

// A notification from us, encrypted for this browser: {title, body, url, tag}.
addEventListener("push", (event) => {
  let told;
  try {
    told = event.data.json();
  } catch {
    return;
  }
  const { title, body, url, tag } = told;
  event.waitUntil(show(String(title), { body: String(body), tag: String(tag), icon: ICON, badge: ICON, data: { url } }));
});

async function show(title, options) {
  const pages = await clients.matchAll({ type: "window" });
  // Whoever looks at Trellis sees it there. The browser asks for a notification, so it is a silent one.
  const silent = pages.some((page) => page.visibilityState === "visible" && page.focused);
  await registration.showNotification(title, { ...options, silent });
}

addEventListener("notificationclick", (event) => {
  event.notification.close();
  const url = new URL(event.notification.data?.url ?? "/", location.origin);
  if (url.origin === location.origin) event.waitUntil(goTo(url.href));
});

async function goTo(href) {
  const pages = await clients.matchAll({ type: "window" });
  const page = pages.find((one) => one.focused) ?? pages[0];
  if (!page) return clients.openWindow(href);
  try {
    await page.focus();
    return await page.navigate(href);
  } catch {
    return clients.openWindow(href); // a page that this worker does not hold yet
  }
}
