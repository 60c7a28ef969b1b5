// Drives the TypeScript package through calls.json and prints a line `[status, body]` for each call.
import { readFileSync } from "node:fs";

const { createCodewright, turn } = await import(process.env.CODEWRIGHT_SDK || new URL("../typescript/dist/index.js", import.meta.url).href);
const directory = process.env.CODEWRIGHT_STAGE;
const calls = JSON.parse(readFileSync(new URL("calls.json", import.meta.url), "utf8"));
const { client, server } = await createCodewright({ directory });
const saved = { directory };

const fill = (value) => {
  if (typeof value === "string") return value.startsWith("$") ? saved[value.slice(1)] : value;
  if (Array.isArray(value)) return value.map(fill);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, fill(inner)]));
};
const pick = (value, path) => path.split(".").reduce((inner, key) => inner[key], value);

async function play(entry) {
  if (entry.turn !== undefined) {
    const types = [];
    for await (const event of turn(client, fill(entry.turn))) types.push(event.type);
    return [200, types];
  }
  const path = entry.call.split(".");
  const method = path.pop();
  const namespace = path.reduce((node, name) => node[name], client);
  // The first argument of a call without parameters is its options.
  const { data, error, response } = await (entry.params === undefined ? namespace[method]() : namespace[method](fill(entry.params)));
  for (const [name, place] of Object.entries(entry.save ?? {})) saved[name] = pick(data, place);
  const body = data instanceof Blob ? await data.text() : (data ?? error);
  return [response.status, body];
}

try {
  for (const entry of calls) console.log(JSON.stringify(await play(entry)));
} finally {
  await server.close();
}
