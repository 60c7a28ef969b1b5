/** The arguments of a tool as JSON Schema draft 2020-12. */
import { isRecord } from "../plugins.js";
import type { JsonObject } from "../protocol.js";
import { toJson } from "../json.js";
import { isJsonSchema, isStandard, isZod3, isZod4, type Zod4Schema } from "./kinds.js";
import { fromZod3, isOptionalZod3 } from "./zod3.js";

const DRAFT = "https://json-schema.org/draft/2020-12/schema";

export function toolParameters(shape: unknown): JsonObject {
  const schema =
    isRecord(shape) && !isZod4(shape) && !isZod3(shape) && !isJsonSchema(shape) ? objectOf(shape) : fromSchema(shape);
  const plain = toJson<JsonObject>(schema).value ?? {};
  delete plain["$schema"];
  // Providers refuse a tool whose arguments are not an object, for example one without `args`.
  if (Object.keys(plain).length === 0) return { $schema: DRAFT, type: "object", properties: {} };
  return { $schema: DRAFT, ...plain };
}

/** A map of schemas as one object. */
function objectOf(shape: Record<string, unknown>): Record<string, unknown> {
  const properties: Record<string, unknown> = {};
  const required: string[] = [];
  for (const [name, schema] of Object.entries(shape)) {
    const property = fromSchema(schema);
    delete property["$schema"];
    Object.defineProperty(properties, name, { value: property, enumerable: true });
    if (!acceptsMissing(schema)) required.push(name);
  }
  return { type: "object", properties, ...(required.length > 0 ? { required } : {}) };
}

function fromSchema(schema: unknown): Record<string, unknown> {
  if (isZod4(schema)) return fromZod4(schema);
  if (isZod3(schema)) return fromZod3(schema);
  if (isRecord(schema) && !isStandard(schema)) return { ...schema };
  return {};
}

function fromZod4(schema: Zod4Schema): Record<string, unknown> {
  // zod is only loaded when a plugin has a tool with zod arguments.
  const { toJSONSchema } = require("./zod.js") as typeof import("./zod.js");
  return toJSONSchema(schema as never, {
    io: "input",
    unrepresentable: "any",
    override({ zodSchema, jsonSchema }) {
      // Descriptions are stored in the plugin's own copy of zod, so ours does not find them.
      const { description } = zodSchema as unknown as Zod4Schema;
      if (typeof description === "string") jsonSchema.description ??= description;
    },
  }) as Record<string, unknown>;
}

function acceptsMissing(schema: unknown): boolean {
  if (isZod4(schema)) {
    const { optin } = schema._zod as unknown as { optin?: string };
    return optin === "optional";
  }
  if (isZod3(schema)) return isOptionalZod3(schema);
  if (isRecord(schema) && typeof schema["optional"] === "boolean") return schema["optional"];
  return false;
}
