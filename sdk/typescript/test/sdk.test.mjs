// The package against the real program with the scripted model. Runs on the stage of editors/test/stage.sh.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, connect } from "node:net";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";

// CODEWRIGHT_SDK names the installed package instead of the built one.
const { CODEWRIGHT_SDK: installed, CODEWRIGHT_STAGE: directory } = process.env;
const DIST = installed ? pathToFileURL(installed).href : new URL("../dist/index.js", import.meta.url).href;
const sdk = await import(DIST);
const text = (words) => [{ type: "text", text: words }];
const timeout = { timeout: 60_000 };
let client;
let server;

before(async () => ({ client, server } = await sdk.createCodewright({ directory })), timeout);
after(() => server?.close());

const newSession = () => sdk.unwrap(client.session.create({ title: "A test" }));
const collect = async (source) => {
  const found = [];
  for await (const event of source) found.push(event);
  return found;
};
/** Waits until a condition holds. */
const until = async (condition) => {
  for (let tries = 0; !(await condition()); tries++) {
    assert.ok(tries < 200, "the condition did not hold in time");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
};

test("a prompt returns the answer", timeout, async () => {
  const { id: sessionID } = await newSession();
  const answer = await sdk.unwrap(client.session.prompt({ sessionID, parts: text("Hello") }));
  assert.equal(sdk.textOf(answer), "Hello from the model");
  assert.equal((await sdk.unwrap(client.session.messages({ sessionID }))).length, 2);
});

test("errors are returned, or thrown with status and body", timeout, async () => {
  const sessionID = "ses_missing0000000000000000000";
  const { data, error, response } = await client.session.get({ sessionID });
  assert.equal(data, undefined);
  assert.equal(error.name, "NotFoundError");
  assert.equal(response.status, 404);
  const isMissing = (failure) => failure instanceof sdk.CodewrightError && failure.status === 404 && failure.message.includes(sessionID);
  await assert.rejects(client.session.get({ sessionID }, { throwOnError: true }), isMissing);
  await assert.rejects(sdk.unwrap(client.session.get({ sessionID })), isMissing);
  assert.throws(() => client.session.get({}), /session\.get needs the parameter `sessionID`/);
});

test("a server with a password refuses other clients", timeout, async () => {
  const stranger = sdk.createCodewrightClient({ baseUrl: server.url });
  assert.equal((await stranger.path.get()).response.status, 401);
  await assert.rejects(collect(sdk.events(stranger)), (error) => error.status === 401);
});

test("a model may work longer than the deadline of fetch", timeout, async () => {
  const symbol = Symbol.for("undici.globalDispatcher.1");
  // Node loads its class when the first request is created, as in the package.
  new Request(server.url);
  const usual = globalThis[symbol];
  // The deadline of Node is five minutes.
  globalThis[symbol] = new usual.constructor({ headersTimeout: 1000, bodyTimeout: 1000 });
  try {
    const { id: sessionID } = await newSession();
    const answer = await sdk.unwrap(client.session.prompt({ sessionID, parts: text("WAIT for it slowly") }));
    assert.match(sdk.textOf(answer), /three$/);
    const late = await client.session.prompt({ sessionID, parts: text("WAIT for it slowly") }, { timeout: 300 });
    assert.equal(late.error.name, "TimeoutError");
  } finally {
    globalThis[symbol] = usual;
  }
});

test("the module for browsers needs nothing of node", () => {
  for (const name of ["client", "events", "http", "parts", "routes"]) {
    const code = readFileSync(new URL(`${name}.js`, DIST), "utf8");
    assert.doesNotMatch(code, /from"node:|process\./, name);
    for (const [, imported] of code.matchAll(/from"\.\/(\w+)\.js"/g)) assert.match(imported, /^(client|events|http|parts|routes)$/);
  }
});

test("a server that is away is an error within the deadline", timeout, async () => {
  const away = sdk.createCodewrightClient({ baseUrl: "http://127.0.0.1:1" });
  assert.ok((await away.path.get()).error instanceof Error);
  const attempts = [];
  const options = { sseDefaultRetryDelay: 1, sseMaxRetryAttempts: 3, onSseError: (error) => attempts.push(error) };
  await assert.rejects(collect(sdk.events(away, options)), sdk.CodewrightError);
  assert.equal(attempts.length, 4);
});

test("a turn yields its events and ends when the session is idle", timeout, async () => {
  const { id: sessionID } = await newSession();
  const found = await collect(sdk.turn(client, { sessionID, parts: text("PLAN it") }));
  const types = found.map((event) => event.type);
  assert.equal(types.at(-1), "session.idle");
  assert.ok(types.includes("todo.updated") && types.includes("message.part.delta"), String(types));
  assert.deepEqual((await sdk.unwrap(client.session.todo({ sessionID }))).map((todo) => todo.status), ["completed", "in_progress"]);
});

test("a turn of a failed request ends too", timeout, async () => {
  const { id: sessionID } = await newSession();
  const types = (await collect(sdk.turn(client, { sessionID, parts: text("BREAK it") }))).map((event) => event.type);
  assert.ok(types.includes("session.error"), String(types));
  await assert.rejects(collect(sdk.turn(client, { sessionID, parts: [] })), sdk.CodewrightError);
});

test("permission requests are answered", timeout, async () => {
  const { id: sessionID } = await newSession();
  const stop = new AbortController();
  const asked = [];
  const decide = (request) => (asked.push(request.permission), "once");
  const answering = sdk.answerPermissions(client, decide, { sessionID, signal: stop.signal });
  const answer = await sdk.unwrap(client.session.prompt({ sessionID, parts: text("RUN it") }));
  stop.abort();
  await answering;
  assert.deepEqual(asked, ["bash"]);
  assert.equal(sdk.textOf(answer), "Ran it.");
  const messages = await sdk.unwrap(client.session.messages({ sessionID }));
  const [call] = messages.flatMap(sdk.toolCalls);
  assert.equal(call.state.status, "completed");
  assert.match(messages.map(sdk.toMarkdown).join(""), /- `bash`: echo from-bash/);
});

/** A proxy that closes all connections when told to. */
async function proxy(target) {
  const sockets = new Set();
  const front = createServer((client) => {
    const back = connect(new URL(target).port, "127.0.0.1");
    for (const socket of [client, back]) {
      sockets.add(socket);
      socket.on("error", () => {}).on("close", () => sockets.delete(socket));
    }
    client.pipe(back).pipe(client);
  });
  front.listen(0, "127.0.0.1");
  await once(front, "listening");
  const cut = () => sockets.forEach((socket) => socket.destroy());
  return { url: `http://127.0.0.1:${front.address().port}`, cut, close: () => (cut(), front.close()) };
}

test("an event stream that breaks continues, and the end of a turn is not lost", timeout, async () => {
  const broken = await proxy(server.url);
  try {
    const distant = sdk.createCodewrightClient({ baseUrl: broken.url, password: server.password, directory });
    const { id: sessionID } = await newSession();
    const seen = [];
    let cuts = 0;
    for await (const event of sdk.turn(distant, { sessionID, parts: text("WAIT for it") })) {
      seen.push(event);
      // The first connection ends in the middle, and the second one while the model finishes unobserved.
      if (event.type === "message.part.delta" && cuts < 2) {
        if (++cuts === 2) await until(async () => (await sdk.unwrap(client.session.status()))[sessionID] === undefined);
        broken.cut();
      }
    }
    assert.equal(cuts, 2);
    assert.equal(seen.at(-1).type, "session.idle");
    const parts = new Map(seen.flatMap((event) => (event.type === "message.part.updated" ? [[event.properties.part.id, event.properties.part]] : [])));
    assert.ok([...parts.values()].some((part) => part.type === "text" && part.text.endsWith("nine ten")), "the last state of the answer");
  } finally {
    broken.close();
  }
});

test("the model uses a tool of this program", timeout, async () => {
  const add = sdk.defineTool({
    description: "Adds two numbers",
    parameters: { properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] },
    execute: ({ a, b }) => ({ sum: a + b }),
  });
  const fail = { description: "Fails", parameters: {}, execute: () => Promise.reject(new Error("out of order")) };
  const tools = await sdk.serveTools(client, { name: "calculator", tools: { add, fail } });
  try {
    const { id: sessionID } = await newSession();
    await sdk.unwrap(client.session.prompt({ sessionID, parts: text("ADD it") }));
    const [call] = (await sdk.unwrap(client.session.messages({ sessionID }))).flatMap(sdk.toolCalls);
    assert.equal(call.state.output, '{"sum":42}');
    assert.equal((await fetch(tools.url, { method: "POST", body: "{}" })).status, 401);
  } finally {
    await tools.close();
  }
});

test("a server that cannot start is an error with its output", timeout, async () => {
  await assert.rejects(sdk.createCodewrightServer({ program: "/missing/codewright" }), /cannot start|ended with 127; install it/);
  await assert.rejects(sdk.createCodewrightServer({ args: ["--sandbox=strange"] }), /strange/);
  await assert.rejects(sdk.createCodewrightServer({ program: "/bin/sleep", timeout: 300 }), /ended with|was not ready/);
});

test("close ends the server", timeout, async () => {
  const own = await sdk.createCodewrightServer({ directory, config: { username: "tester" } });
  const other = sdk.createCodewrightClient({ baseUrl: own.url, password: own.password, directory });
  assert.equal((await sdk.unwrap(other.config.get())).username, "tester");
  await own.close();
  await assert.rejects(fetch(own.url));
});

test("a server ends with the process that started it, even if that is killed", timeout, async () => {
  const code = `
    import { createCodewrightServer } from ${JSON.stringify(DIST)};
    const server = await createCodewrightServer({ directory: ${JSON.stringify(directory)} });
    console.log(server.url);
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = await once(child.stdout, "data");
  const url = String(line).trim();
  assert.equal((await fetch(`${url}/path`)).status, 401);
  child.kill("SIGKILL");
  await until(() => fetch(url).then(() => false, () => true));
});

test("a process with a server that it does not use ends by itself", timeout, async () => {
  const code = `import { createCodewrightServer } from ${JSON.stringify(DIST)}; console.log((await createCodewrightServer()).url);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], { cwd: directory, stdio: ["ignore", "pipe", "inherit"] });
  const [line] = await once(child.stdout, "data");
  const [status] = await once(child, "exit");
  assert.equal(status, 0);
  await until(() => fetch(String(line).trim()).then(() => false, () => true));
});
