// A dashboard of a server in the terminal: the sessions of a directory, their state, changes and costs.
//
//   node dashboard.mjs [--url http://localhost:4096] [--directory .] [--once]
//
// The password comes from CODEWRIGHT_SERVER_PASSWORD. The table is drawn again when something happens.
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { createCodewrightClient, events, unwrap } from "@codewright/sdk";

const { values } = parseArgs({
  options: {
    url: { type: "string", default: "http://localhost:4096" },
    directory: { type: "string", default: "." },
    once: { type: "boolean", default: false },
  },
});
const ROWS = 15;
const INTERVAL = 500;
const client = createCodewrightClient({
  baseUrl: values.url,
  directory: resolve(values.directory),
  password: process.env.CODEWRIGHT_SERVER_PASSWORD,
});

/** Titles come from a model, so control characters are not written to the terminal. */
const clean = (text, width) => text.replaceAll(/[\p{Cc}\p{Cf}]/gu, " ").slice(0, width).padEnd(width);
const costs = new Map();

/** Returns the cost of a session; that of a session that has not changed is remembered. */
async function cost(session) {
  const known = costs.get(session.id);
  if (known?.updated === session.time.updated) return known.cost;
  const messages = await unwrap(client.session.messages({ sessionID: session.id }));
  const sum = messages.reduce((total, { info }) => total + (info.role === "assistant" ? info.cost : 0), 0);
  costs.set(session.id, { updated: session.time.updated, cost: sum });
  return sum;
}

async function table() {
  const [sessions, status, permissions] = await Promise.all([
    unwrap(client.session.list({ roots: true, limit: ROWS })),
    unwrap(client.session.status()),
    unwrap(client.permission.list()),
  ]);
  const waiting = new Set(permissions.map((request) => request.sessionID));
  const rows = await Promise.all(
    sessions.map(async (session) => {
      const state = waiting.has(session.id) ? "waiting" : (status[session.id]?.type ?? "idle");
      const changes = session.summary ? `+${session.summary.additions} -${session.summary.deletions}` : "";
      const time = new Date(session.time.updated).toLocaleTimeString("en", { hour12: false });
      return `${clean(session.title, 40)}  ${state.padEnd(8)}  ${changes.padEnd(12)}  ${time}  $${(await cost(session)).toFixed(4)}`;
    }),
  );
  const head = `${"session".padEnd(40)}  state     changes       updated   cost`;
  return [head, ...rows, "", `${Object.keys(status).length} running, ${waiting.size} waiting for permission`].join("\n");
}

if (values.once) {
  console.log(await table());
} else {
  let timer;
  const draw = async () => {
    const text = await table().catch((error) => error.message);
    process.stdout.write(`\x1b[2J\x1b[H${text}\n`);
    timer = undefined;
  };
  try {
    // A burst of events draws once.
    for await (const event of events(client)) if (event.type !== "server.heartbeat") timer ??= setTimeout(draw, INTERVAL);
  } catch (error) {
    console.error(`dashboard: ${error.message}`);
    process.exitCode = 1;
  }
}
