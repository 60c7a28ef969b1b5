/** TypeScript and JSX to JavaScript. Lines stay where they are, so stacks need no source maps. */
import { extname } from "node:path";
import { transform } from "sucrase";

export function transformSource(source: string, file: string): string {
  const extension = extname(file);
  const typescript = extension !== ".jsx";
  const jsx = extension === ".tsx" || extension === ".jsx";
  try {
    const { code } = transform(source, {
      transforms: [...(typescript ? (["typescript"] as const) : []), ...(jsx ? (["jsx"] as const) : [])],
      disableESTransforms: true,
      preserveDynamicImport: true,
      injectCreateRequireForImportRequire: true,
      production: true,
      jsxRuntime: "automatic",
    });
    return code;
  } catch (error) {
    throw syntaxError(error, file);
  }
}

/** The transformer puts the place into the text of its message and into `loc`. */
function syntaxError(error: unknown, file: string): SyntaxError {
  const { message = "invalid syntax", loc } = error as { message?: string; loc?: { line: number; column: number } };
  const text = message.replace(/^Error transforming [^\n]*?: /, "").replace(/\s*\(\d+:\d+\)\s*$/, "");
  const place = loc === undefined ? "" : `:${loc.line}:${loc.column}`;
  return new SyntaxError(`${text} (${file}${place})`);
}
