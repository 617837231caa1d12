// SPDX-License-Identifier: MIT
// A service worker for hosts of static files that cannot set headers: it adds those that shared memory needs, to
// everything that the page loads, the page itself and its workers included. Headers of the server are better where they
// are possible: this one works from the second load on, and not where service workers are not allowed.
//
// Put it beside the pages (it serves the folder that it is in, and below), and into the page, before what needs memory:
//
//     if (!crossOriginIsolated && !navigator.serviceWorker.controller) {
//       await navigator.serviceWorker.register('isolate.js');
//       await navigator.serviceWorker.ready;
//       location.reload();
//     }
//
// To be rid of it: (await navigator.serviceWorker.getRegistration())?.unregister().

self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));

async function isolated(request) {
  const response = await fetch(request);
  if (response.type === 'opaque' || response.type === 'opaqueredirect' || response.status === 0) return response;
  const headers = new Headers(response.headers);
  headers.set('Cross-Origin-Opener-Policy', 'same-origin');
  headers.set('Cross-Origin-Embedder-Policy', 'require-corp');
  headers.set('Cross-Origin-Resource-Policy', 'same-origin');
  const hasBody = ![101, 204, 205, 304].includes(response.status);
  return new Response(hasBody ? response.body : null,
    { status: response.status, statusText: response.statusText, headers });
}

self.addEventListener('fetch', (event) => {
  const { request } = event;
  if (request.cache === 'only-if-cached' && request.mode !== 'same-origin') return; // of developer tools
  event.respondWith(isolated(request));
});
