{% comment %} Context: kept (addresses; the first is the page to show). {% endcomment %}const KEPT = [{% for address in kept %}"{{ address|escapejs }}"{% if not forloop.last %}, {% endif %}{% endfor %}];
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
