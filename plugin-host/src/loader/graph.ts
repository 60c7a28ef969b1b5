/** The sources that a module reaches through relative imports. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { probeFile } from "./probe.js";

/** Bounds of the walk. Larger plugins are bundles, which have few files. */
const MAX_FILES = 500;
const MAX_BYTES = 16 * 1024 * 1024;

const RELATIVE_IMPORT = /\b(?:from|import)\s*\(?\s*["'](\.{1,2}(?:\/[^"'\n]*)?)["']/g;

export interface SourceFile {
  file: string;
  source: string;
}

/** Yields the entry first. Files that cannot be read are left out. */
export function* walkSources(entry: string): Generator<SourceFile> {
  const files = [entry];
  const seen = new Set(files);
  let bytes = 0;
  for (const file of files) {
    let source: string;
    try {
      source = readFileSync(file, "utf8");
    } catch {
      continue;
    }
    bytes += source.length;
    if (bytes > MAX_BYTES) return;
    yield { file, source };
    for (const [, specifier = ""] of source.matchAll(RELATIVE_IMPORT)) {
      const target = probeFile(join(dirname(file), specifier));
      if (target === undefined || seen.has(target) || seen.size >= MAX_FILES) continue;
      seen.add(target);
      files.push(target);
    }
  }
}
