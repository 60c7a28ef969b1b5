/** What plugins give as the arguments of a tool. */
import { isRecord } from "../plugins.js";

/** A schema of zod 4. */
export interface Zod4Schema {
  _zod: { def: unknown };
  description?: string;
  safeParseAsync(value: unknown): Promise<unknown>;
  toJSONSchema?: (options: unknown) => unknown;
}

/** A schema of zod 3. */
export interface Zod3Schema {
  _def: { typeName: string; [key: string]: unknown };
  description?: string;
  safeParseAsync(value: unknown): Promise<unknown>;
}

/** A schema of any library that follows Standard Schema. */
export interface StandardSchema {
  "~standard": { validate(value: unknown): unknown };
}

export function isZod4(value: unknown): value is Zod4Schema {
  return isObject(value) && isObject(value["_zod"]) && typeof value["safeParseAsync"] === "function";
}

export function isZod3(value: unknown): value is Zod3Schema {
  return (
    isObject(value) && !("_zod" in value) && isObject(value["_def"]) && typeof value["_def"]["typeName"] === "string"
  );
}

export function isStandard(value: unknown): value is StandardSchema {
  return isObject(value) && isObject(value["~standard"]) && typeof value["~standard"]["validate"] === "function";
}

/** True for `{type: "object", properties: …}`, which is JSON Schema and not a map of schemas. */
export function isJsonSchema(value: unknown): value is Record<string, unknown> {
  if (!isRecord(value)) return false;
  if (typeof value["$schema"] === "string") return true;
  return value["type"] === "object" && (value["properties"] === undefined || isRecord(value["properties"]));
}

/** Schemas of some libraries are functions with properties. */
function isObject(value: unknown): value is Record<string, unknown> {
  return (typeof value === "object" && value !== null) || typeof value === "function";
}
