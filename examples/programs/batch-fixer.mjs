// Gives the same task to many repositories, and reports where the check passes afterwards.
//
//   node batch-fixer.mjs "Replace the deprecated call" "npm test" repo1 repo2 …
//
// Each repository gets a new branch, and a commit if the check passes. Two repositories are worked on at the same time.
import { execFileSync, spawnSync } from "node:child_process";
import { resolve } from "node:path";
import { createCodewright, unwrap } from "@codewright/sdk";

const [task, check, ...repositories] = process.argv.slice(2);
if (repositories.length === 0) {
  console.error('usage: node batch-fixer.mjs "TASK" "CHECK" REPOSITORY…');
  process.exit(2);
}
const BRANCH = "codewright-batch";
const WORKERS = 2;
const CHECK_MINUTES = 10;

const { client, server } = await createCodewright({ config: { permission: { "*": "allow" } } });
const queue = repositories.map((path) => resolve(path));
const results = [];

async function fix(directory) {
  const git = (...args) => execFileSync("git", ["-C", directory, ...args], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  if (git("status", "--porcelain") !== "") return "skipped: there are uncommitted changes";
  git("switch", "--quiet", "--create", BRANCH);
  const session = await unwrap(client.session.create({ directory, title: task.slice(0, 80) }));
  const prompt = (text) => unwrap(client.session.prompt({ directory, sessionID: session.id, parts: [{ type: "text", text }] }));
  let message = `${task}\n\nThe check \`${check}\` must pass afterwards. I run it myself.`;
  for (let attempt = 1; attempt <= 3; attempt++) {
    const answer = await prompt(message);
    if (answer.info.error !== undefined) return `failed: ${answer.info.error.data.message ?? answer.info.error.name}`;
    const run = spawnSync("/bin/sh", ["-c", check], { cwd: directory, encoding: "utf8", timeout: CHECK_MINUTES * 60_000 });
    if (run.status === 0) {
      if (git("status", "--porcelain") === "") return "unchanged";
      git("add", "--all");
      git("commit", "--quiet", "--message", task.split("\n")[0].slice(0, 72));
      return `fixed with ${attempt} ${attempt === 1 ? "attempt" : "attempts"}`;
    }
    message = `The check fails:\n\n${(run.stdout + run.stderr).slice(-8000)}`;
  }
  return "failed: the check does not pass";
}

async function work() {
  for (let directory = queue.shift(); directory !== undefined; directory = queue.shift()) {
    const result = await fix(directory).catch((error) => `failed: ${error.message}`);
    results.push(result);
    console.log(`${directory}: ${result}`);
  }
}

try {
  await Promise.all(Array.from({ length: WORKERS }, work));
} finally {
  await server.close();
}
process.exitCode = results.some((result) => result.startsWith("failed")) ? 1 : 0;
