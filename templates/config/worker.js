{% comment %} Context: kept (addresses; the first is the page to show), icon (of notifications). {% endcomment %}const KEPT = [{% for address in kept %}"{{ address|escapejs }}"{% if not forloop.last %}, {% endif %}{% endfor %}];
const ICON = "{{ icon|escapejs }}";
const CACHE = "trellis-offline-1";

addEventListener("install", (event) => {
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(KEPT)).then(() => skipWaiting()));
});

addEventListener("activate", (event) => {
  event.waitUntil(
    Promise.all([
      clients.claim(),
      registration.navigationPreload?.enable(),
      caches.keys().then((names) =>
        Promise.all(names.filter((name) => name !== CACHE).map((name) => caches.delete(name))),
      ),
    ]),
  );
});

addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.mode === "navigate" && request.method === "GET") {
    event.respondWith(open(event));
  } else if (KEPT.includes(new URL(request.url).pathname)) {
    event.respondWith(fetch(request).catch(() => caches.match(request, { ignoreSearch: true })));
  }
});

async function open(event) {
  try {
    return (await event.preloadResponse) || (await fetch(event.request));
  } catch {
    return (await caches.match(KEPT[0])) || Response.error();
  }
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
