/** Checks the arguments of a tool call against the shape of the tool. */
import { isRecord } from "../plugins.js";
import { ErrorCode, ProtocolError } from "../protocol.js";
import { isJsonSchema, isStandard, isZod3, isZod4, type Issue, type ParseResult } from "./kinds.js";

/** The arguments as `execute` gets them: parsed, with defaults, without unknown names. */
export async function parseArguments(tool: string, shape: unknown, value: unknown): Promise<unknown> {
  const args = value ?? {};
  if (isZod4(shape) || isZod3(shape) || isStandard(shape)) return parseOne(tool, shape, args, []);
  if (!isRecord(shape) || isJsonSchema(shape)) return args;
  if (!isRecord(args)) throw invalid(tool, [{ path: [], message: "expected an object" }]);
  const parsed: Record<string, unknown> = {};
  const issues: Issue[] = [];
  for (const [name, schema] of Object.entries(shape)) {
    const given = Object.hasOwn(args, name) ? args[name] : undefined;
    const result = await parse(schema, given);
    if (!result.success) issues.push(...issuesOf(result.error, [name]));
    else if (result.data !== undefined) parsed[name] = result.data;
  }
  if (issues.length > 0) throw invalid(tool, issues);
  return parsed;
}

async function parseOne(tool: string, schema: unknown, value: unknown, path: unknown[]): Promise<unknown> {
  const result = await parse(schema, value);
  if (!result.success) throw invalid(tool, issuesOf(result.error, path));
  return result.data;
}

async function parse(schema: unknown, value: unknown): Promise<ParseResult> {
  if (isZod4(schema) || isZod3(schema)) return schema.safeParseAsync(value);
  if (!isStandard(schema)) return { success: true, data: value };
  const result = (await schema["~standard"].validate(value)) as { value?: unknown; issues?: Issue[] };
  if (result.issues === undefined) return { success: true, data: result.value };
  return { success: false, error: { issues: result.issues, message: "invalid" } };
}

function issuesOf(error: { issues?: Issue[]; message: string }, path: unknown[]): Issue[] {
  const issues = error.issues ?? [{ message: error.message }];
  return issues.map((issue) => ({ path: [...path, ...(issue.path ?? [])], message: issue.message }));
}

function invalid(tool: string, issues: Issue[]): ProtocolError {
  const lines = issues.slice(0, 20).map(({ path = [], message }) => {
    // Standard Schema allows path segments of the form `{key}`.
    const names = path.map((segment) => String(isRecord(segment) ? segment["key"] : segment));
    return names.length === 0 ? message : `${names.join(".")}: ${message}`;
  });
  return new ProtocolError(ErrorCode.invalidParams, `invalid arguments for the tool ${tool}: ${lines.join("; ")}`, {
    kind: "arguments",
  });
}
