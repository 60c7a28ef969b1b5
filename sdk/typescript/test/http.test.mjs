// Requests and event streams with replies made here.
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";
import { test } from "node:test";

const { CODEWRIGHT_SDK: installed } = process.env;
const sdk = await import(installed ? pathToFileURL(installed).href : new URL("../dist/index.js", import.meta.url).href);

/** A client that records requests and replies with a value. */
function recorder(reply = () => Response.json({})) {
  const requests = [];
  const fetch = async (request) => {
    const { pathname, search } = new URL(request.url);
    requests.push({ method: request.method, path: pathname + search, headers: request.headers, body: await request.text() });
    return reply(requests.length);
  };
  return { requests, client: sdk.createCodewrightClient({ baseUrl: "http://a/", fetch, directory: "/d é", password: "pä", headers: { "x-a": "1" } }) };
}

test("parameters are placed", async () => {
  const { client, requests } = recorder();
  await client.session.prompt({ sessionID: "a/b?", directory: "/d", parts: [] });
  await client.v2.fs.read({ path: "a b/c", location: { directory: "/d" } });
  await client.config.update({ config: { model: "a/b" } });
  await client.mcp.remove({ name: "x" });
  await client.v2.session.create({ location: { directory: "/d" } });
  await client.sync.replay({ query_directory: "/q", body_directory: "/b", events: [] });
  await client.global.health({ headers: { "x-a": "2" } });
  await client.session.list();
  assert.deepEqual(
    requests.map(({ method, path, body }) => [method, path, body]),
    [
      ["POST", "/session/a%2Fb%3F/message?directory=%2Fd", '{"parts":[]}'],
      ["GET", "/api/fs/read/a%20b/c?location%5Bdirectory%5D=%2Fd", ""],
      ["PATCH", "/config", '{"model":"a/b"}'],
      ["DELETE", "/mcp?name=x", ""],
      ["POST", "/api/session", '{"location":{"directory":"/d"}}'],
      ["POST", "/sync/replay?directory=%2Fq", '{"directory":"/b","events":[]}'],
      ["GET", "/global/health", ""],
      ["GET", "/session", ""],
    ],
  );
  assert.equal(requests[0].headers.get("x-opencode-directory"), "%2Fd%20%C3%A9");
  assert.equal(requests[0].headers.get("authorization"), `Basic ${Buffer.from("opencode:pä").toString("base64")}`);
  assert.deepEqual([requests[5], requests[6]].map(({ headers }) => headers.get("x-a")), ["1", "2"]);
});

test("events are parsed in every division, and continue after the last id", async () => {
  const bytes = new TextEncoder().encode('id: 7\r\ndata: {"a":\r\ndata: "é"}\r\n\r\n: comment\n\ndata: {"b":1}\n\nevent: x\n\n');
  for (const size of [1, 2, 3, 5, bytes.length]) {
    const pieces = [];
    for (let start = 0; start < bytes.length; start += size) pieces.push(bytes.slice(start, start + size));
    const { client, requests } = recorder(() => new Response(ReadableStream.from(pieces)));
    const found = [];
    const stop = new AbortController();
    for await (const event of sdk.events(client, { signal: stop.signal, sseDefaultRetryDelay: 1 })) {
      found.push(event);
      if (found.length === 4) stop.abort();
    }
    assert.deepEqual(found, [{ a: "é" }, { b: 1 }, { a: "é" }, { b: 1 }]);
    assert.deepEqual(requests.map(({ headers }) => headers.get("last-event-id")), [null, "7"]);
  }
});

test("an event has a limit", async () => {
  const flood = () => new Response(ReadableStream.from(Array(20).fill(new Uint8Array(1024 * 1024).fill(120))));
  const options = { sseDefaultRetryDelay: 1, sseMaxRetryAttempts: 1 };
  await assert.rejects(async () => {
    for await (const _ of sdk.events(recorder(flood).client, options));
  }, /too large/);
});

test("a stream that only greets does not go on forever", async () => {
  const { client, requests } = recorder(() => new Response('data: {"type":"server.connected"}\n\n'));
  await assert.rejects(async () => {
    for await (const _ of sdk.events(client, { sseDefaultRetryDelay: 1, sseMaxRetryAttempts: 3 }));
  }, /ended the stream/);
  assert.equal(requests.length, 4);
});

test("replies of all kinds are read", async () => {
  const call = async (response) => (await recorder(() => response).client.path.get()).data;
  assert.deepEqual(await call(new Response(null, { status: 204 })), {});
  assert.equal(await call(new Response("+a", { headers: { "content-type": "text/x-diff" } })), "+a");
  assert.equal(await (await call(new Response("x", { headers: { "content-type": "application/octet-stream" } }))).text(), "x");
  const failed = await recorder(() => new Response("no", { status: 500 })).client.path.get();
  assert.deepEqual([failed.error, failed.response.status], ["no", 500]);
});
