// The API document for generators of types: the one that the program serves, with what it leaves out.
//
// The program describes requests and successful replies. Generators also need the bodies of errors, which `errors.json`
// has: schemas, and for each status and union of schemas the operations that send it.
import { readFileSync } from "node:fs";

const METHODS = ["get", "post", "put", "patch", "delete"];
/** Query parameters that the server parses as numbers. */
const NUMBERS = { "v2.session.history": ["limit", "after"] };
/** Names of operations whose request body may be missing although they belong to the v2 API. */
const BODY_OPTIONAL = new Set(["v2.projectCopy.create", "v2.projectCopy.remove"]);

/** Operations whose generated name would have a number, and their ids for generators. */
const RENAMED = { "app.log.read": "app.readLog" };

/** Reads the document that the program serves. */
export function readDocument() {
  return JSON.parse(readFileSync(new URL("openapi.json", import.meta.url), "utf8"));
}

/** Returns the operations of a document: id, method, path and description. */
export function operations(document) {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    METHODS.filter((method) => methods[method]).map((method) => ({
      id: methods[method].operationId,
      method: method.toUpperCase(),
      path,
      operation: methods[method],
    })),
  );
}

/**
 * Returns a copy of the document that generators understand completely. Operations that are only another path of an
 * operation (`….alias`) are left out.
 */
export function adjust(served) {
  const document = structuredClone(served);
  const errors = JSON.parse(readFileSync(new URL("errors.json", import.meta.url), "utf8"));
  Object.assign(document.components.schemas, errors.schemas);
  for (const { id, method, path, operation } of operations(document)) {
    if (id.endsWith(".alias")) delete document.paths[path][method.toLowerCase()];
    operation.operationId = RENAMED[id] ?? id;
  }
  const byId = new Map(operations(document).map((entry) => [entry.id, entry]));
  for (const { id, path, operation } of byId.values()) {
    if (operation.requestBody && path.startsWith("/api/") && !BODY_OPTIONAL.has(id)) operation.requestBody.required = true;
    for (const parameter of operation.parameters) {
      if (NUMBERS[id]?.includes(parameter.name)) parameter.schema = { type: "number" };
    }
  }
  for (const [key, ids] of Object.entries(errors.operations)) {
    const [status, ...names] = key.split(/ \| | /);
    for (const id of ids) setError(byId.get(id), id, status, names);
  }
  // The entry of a plugin with options is a pair, which the notation of the program cannot express.
  const options = { type: "array", prefixItems: [{ type: "string" }, { type: "object" }], minItems: 2, maxItems: 2 };
  document.components.schemas.Config.properties.plugin.items = { anyOf: [{ type: "string" }, options] };
  openEmptyObjects(document);
  return document;
}

function setError(entry, id, status, names) {
  if (entry === undefined) throw new Error(`errors.json names the operation \`${id}\`, which the document lacks`);
  const references = names.map((name) => ({ $ref: `#/components/schemas/${name}` }));
  const schema = references.length === 1 ? references[0] : { anyOf: references };
  entry.operation.responses[status] = { description: "Error", content: { "application/json": { schema } } };
}

/** Objects without properties may get some in a later version, so they are open. */
function openEmptyObjects(value) {
  if (value === null || typeof value !== "object") return;
  if (value.type === "object" && value.additionalProperties === false && Object.keys(value.properties ?? {}).length === 0) {
    delete value.additionalProperties;
    delete value.properties;
  }
  for (const inner of Object.values(value)) openEmptyObjects(inner);
}

/** Returns a document as text with a line for each operation and schema, so that changes can be read. */
export function format(document) {
  const lines = (object, indent, write) =>
    Object.entries(object).map(([key, value]) => `${indent}${JSON.stringify(key)}: ${write(value)}`).join(",\n");
  const path = (methods) => `{\n${lines(methods, "      ", JSON.stringify)}\n    }`;
  const { openapi, info, paths, components } = document;
  return `{
  "openapi": ${JSON.stringify(openapi)},
  "info": ${JSON.stringify(info)},
  "paths": {
${lines(paths, "    ", path)}
  },
  "components": {
    "schemas": {
${lines(components.schemas, "      ", JSON.stringify)}
    }
  }
}
`;
}
