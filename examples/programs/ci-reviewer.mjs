// Reviews the changes since a base, prints the findings as annotations of GitHub, and fails if one is severe.
//
//   node ci-reviewer.mjs [BASE]        BASE: HEAD~1, or origin/main in a pull request
//
// The model can read the repository, but neither change files nor run commands.
import { execFileSync } from "node:child_process";
import { createCodewright, unwrap } from "@codewright/sdk";

const base = process.argv[2] ?? "HEAD~1";
const LIMIT = 200_000;
const SCHEMA = {
  type: "object",
  properties: {
    findings: {
      type: "array",
      items: {
        type: "object",
        properties: {
          file: { type: "string" },
          line: { type: "integer" },
          severity: { type: "string", enum: ["error", "warning", "notice"] },
          message: { type: "string" },
        },
        required: ["file", "line", "severity", "message"],
      },
    },
  },
  required: ["findings"],
};

const diff = execFileSync("git", ["diff", "--no-ext-diff", `${base}...HEAD`], { encoding: "utf8", maxBuffer: 64 * 1024 * 1024 });
if (diff === "") {
  console.log(`no changes since ${base}`);
  process.exit(0);
}
if (diff.length > LIMIT) console.log(`::warning::only the first ${LIMIT} characters of the changes are reviewed`);

const { client, server } = await createCodewright({ config: { permission: { edit: "deny", bash: "deny", webfetch: "deny" } } });
try {
  const session = await unwrap(client.session.create({ title: `Review since ${base}` }));
  const answer = await unwrap(
    client.session.prompt({
      sessionID: session.id,
      format: { type: "json_schema", schema: SCHEMA },
      parts: [{ type: "text", text: `Review these changes. Report only faults that matter.\n\n${diff.slice(0, LIMIT)}` }],
    }),
  );
  if (answer.info.error !== undefined) throw new Error(`the review failed: ${JSON.stringify(answer.info.error)}`);
  const { findings } = answer.info.structured;
  // A line break would end an annotation.
  const escape = (text) => String(text).replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
  for (const { file, line, severity, message } of findings) {
    console.log(`::${severity} file=${escape(file)},line=${line}::${escape(message)}`);
  }
  console.log(`${findings.length} findings for $${answer.info.cost.toFixed(4)}`);
  process.exitCode = findings.some((finding) => finding.severity === "error") ? 1 : 0;
} finally {
  await server.close();
}
