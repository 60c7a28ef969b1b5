// The service worker: keeps the files of the app, whose names contain a digest of their content. The page itself and
// all routes always come from the server, so a cached page never meets a newer server.
const CACHE = "codewright-files-1";
/** More files belong to older versions. */
const MAX_FILES = 60;

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  const isFile =
    event.request.method === "GET" &&
    url.origin === self.location.origin &&
    url.pathname.includes("/assets/") &&
    url.pathname.startsWith(new URL(".", self.location.href).pathname);
  if (isFile) event.respondWith(kept(event.request));
});

async function kept(request) {
  const cache = await caches.open(CACHE).catch(() => null);
  const found = await cache?.match(request);
  if (found) return found;
  const response = await fetch(request);
  if (cache && response.ok) {
    await cache.put(request, response.clone()).catch(() => {});
    const names = await cache.keys();
    for (const old of names.slice(0, Math.max(0, names.length - MAX_FILES))) await cache.delete(old);
  }
  return response;
}
