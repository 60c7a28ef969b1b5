/** zod 3 schemas as JSON Schema. zod 3 has no conversion of its own. */
import type { Zod3Schema } from "./kinds.js";

type Schema = Record<string, unknown>;
type Definition = Zod3Schema["_def"];

const MAX_DEPTH = 64;

export function fromZod3(schema: Zod3Schema): Schema {
  return convert(schema, 0);
}

/** True if the schema accepts a missing value. */
export function isOptionalZod3(schema: Zod3Schema): boolean {
  const def = schema._def;
  switch (def.typeName) {
    case "ZodOptional":
    case "ZodDefault":
    case "ZodCatch":
    case "ZodUndefined":
    case "ZodAny":
    case "ZodUnknown":
      return true;
    case "ZodEffects":
      return isOptionalZod3(def["schema"] as Zod3Schema);
    case "ZodBranded":
      return isOptionalZod3(def["type"] as Zod3Schema);
    case "ZodNullable":
    case "ZodReadonly":
      return isOptionalZod3(def["innerType"] as Zod3Schema);
    case "ZodPipeline":
      return isOptionalZod3(def["in"] as Zod3Schema);
    case "ZodUnion":
      return (def["options"] as Zod3Schema[]).some(isOptionalZod3);
    default:
      return false;
  }
}

function convert(schema: Zod3Schema, depth: number): Schema {
  if (depth > MAX_DEPTH) return {};
  const result = convertType(schema._def, depth + 1);
  const description = schema.description ?? schema._def["description"];
  if (typeof description === "string") result["description"] = description;
  return result;
}

function convertType(def: Definition, depth: number): Schema {
  const inner = (key: string): Schema => convert(def[key] as Zod3Schema, depth);
  switch (def.typeName) {
    case "ZodString":
      return stringSchema(def);
    case "ZodNumber":
      return numberSchema(def);
    case "ZodBigInt":
      return { type: "integer" };
    case "ZodBoolean":
      return { type: "boolean" };
    case "ZodDate":
      return { type: "string", format: "date-time" };
    case "ZodNull":
      return { type: "null" };
    case "ZodNever":
      return { not: {} };
    case "ZodLiteral":
      return literalSchema(def["value"]);
    case "ZodEnum":
      return { type: "string", enum: def["values"] };
    case "ZodNativeEnum":
      return nativeEnumSchema(def["values"] as Record<string, string | number>);
    case "ZodArray":
      return arraySchema(def, inner("type"));
    case "ZodSet":
      return { type: "array", uniqueItems: true, items: inner("valueType") };
    case "ZodTuple":
      return tupleSchema(def, depth);
    case "ZodObject":
      return objectSchema(def, depth);
    case "ZodRecord":
      return { type: "object", propertyNames: inner("keyType"), additionalProperties: inner("valueType") };
    case "ZodUnion":
      return { anyOf: (def["options"] as Zod3Schema[]).map((option) => convert(option, depth)) };
    case "ZodDiscriminatedUnion":
      return { anyOf: [...(def["options"] as Iterable<Zod3Schema>)].map((option) => convert(option, depth)) };
    case "ZodIntersection":
      return { allOf: [inner("left"), inner("right")] };
    case "ZodNullable":
      return { anyOf: [inner("innerType"), { type: "null" }] };
    case "ZodOptional":
    case "ZodCatch":
    case "ZodReadonly":
      return inner("innerType");
    case "ZodDefault":
      return { ...inner("innerType"), default: (def["defaultValue"] as () => unknown)() };
    case "ZodEffects":
      return inner("schema");
    case "ZodBranded":
      return inner("type");
    case "ZodPipeline":
      return inner("in");
    case "ZodLazy":
      return convert((def["getter"] as () => Zod3Schema)(), depth);
    default:
      // any, unknown, and types that JSON has no word for.
      return {};
  }
}

interface Check {
  kind: string;
  value?: unknown;
  regex?: RegExp;
  inclusive?: boolean;
}

const FORMATS: Record<string, string> = {
  email: "email",
  url: "uri",
  uuid: "uuid",
  datetime: "date-time",
  date: "date",
  time: "time",
  duration: "duration",
};

function checksOf(def: Definition): Check[] {
  return Array.isArray(def["checks"]) ? (def["checks"] as Check[]) : [];
}

function stringSchema(def: Definition): Schema {
  const schema: Schema = { type: "string" };
  for (const check of checksOf(def)) {
    const format = FORMATS[check.kind];
    if (format !== undefined) schema["format"] = format;
    else if (check.kind === "min") schema["minLength"] = check.value;
    else if (check.kind === "max") schema["maxLength"] = check.value;
    else if (check.kind === "length") schema["minLength"] = schema["maxLength"] = check.value;
    else if (check.kind === "regex" && check.regex !== undefined) schema["pattern"] = check.regex.source;
  }
  return schema;
}

function numberSchema(def: Definition): Schema {
  const schema: Schema = { type: "number" };
  for (const check of checksOf(def)) {
    if (check.kind === "int") schema["type"] = "integer";
    else if (check.kind === "min") schema[check.inclusive === false ? "exclusiveMinimum" : "minimum"] = check.value;
    else if (check.kind === "max") schema[check.inclusive === false ? "exclusiveMaximum" : "maximum"] = check.value;
    else if (check.kind === "multipleOf") schema["multipleOf"] = check.value;
  }
  return schema;
}

function literalSchema(value: unknown): Schema {
  if (value === null) return { type: "null" };
  const type = typeof value;
  return type === "string" || type === "number" || type === "boolean" ? { type, const: value } : {};
}

function nativeEnumSchema(values: Record<string, string | number>): Schema {
  // Numeric enums also map their values back to their names.
  const names = Object.keys(values).filter((key) => typeof values[values[key] as string] !== "number");
  const list = names.map((name) => values[name]);
  const types = [...new Set(list.map((value) => typeof value))];
  return { type: types.length === 1 ? types[0] : types, enum: list };
}

function arraySchema(def: Definition, items: Schema): Schema {
  const bound = (key: string) => (def[key] as { value?: number } | null | undefined)?.value;
  const exact = bound("exactLength");
  const min = exact ?? bound("minLength");
  const max = exact ?? bound("maxLength");
  return {
    type: "array",
    items,
    ...(min === undefined ? {} : { minItems: min }),
    ...(max === undefined ? {} : { maxItems: max }),
  };
}

function tupleSchema(def: Definition, depth: number): Schema {
  const items = (def["items"] as Zod3Schema[]).map((item) => convert(item, depth));
  const rest = def["rest"] as Zod3Schema | null | undefined;
  return { type: "array", prefixItems: items, minItems: items.length, items: rest ? convert(rest, depth) : false };
}

function objectSchema(def: Definition, depth: number): Schema {
  const shape = (def["shape"] as () => Record<string, Zod3Schema>)();
  const properties: Schema = {};
  const required: string[] = [];
  for (const [name, property] of Object.entries(shape)) {
    properties[name] = convert(property, depth);
    if (!isOptionalZod3(property)) required.push(name);
  }
  const catchall = def["catchall"] as Zod3Schema | undefined;
  const schema: Schema = { type: "object", properties, ...(required.length > 0 ? { required } : {}) };
  if (def["unknownKeys"] === "strict") schema["additionalProperties"] = false;
  else if (catchall !== undefined && catchall._def.typeName !== "ZodNever")
    schema["additionalProperties"] = convert(catchall, depth);
  return schema;
}
