/** The parts of `Bun` that plugins use, for runtimes without it. */
import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { inspect, isDeepStrictEqual, stripVTControlCharacters } from "node:util";
import { gunzipSync, gzipSync } from "node:zlib";
import { openFile, writeTo } from "./file.js";
import { Glob } from "./glob.js";
import { serve } from "./serve.js";
import { createShell, findInPath } from "./shell.js";
import { bunSpawn, bunSpawnSync } from "./spawn.js";

/** The version that the reference uses. Plugins compare it. */
const VERSION = "1.3.14";

export function createBunShim(): Record<string, unknown> {
  return {
    $: createShell(),
    CryptoHasher,
    Glob,
    argv: process.argv,
    deepEquals: isDeepStrictEqual,
    env: process.env,
    file: openFile,
    fileURLToPath,
    gunzipSync,
    gzipSync,
    hash,
    inspect,
    main: process.argv[1] ?? "",
    nanoseconds: () => Math.round(performance.now() * 1e6),
    pathToFileURL,
    randomUUIDv7,
    resolveSync: (name: string, from: string) => createRequire(join(from, "index.js")).resolve(name),
    revision: "",
    serve,
    sleep: (time: number | Date) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds(time))),
    sleepSync: (time: number) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, time),
    spawn: bunSpawn,
    spawnSync: bunSpawnSync,
    stringWidth: (text: string) => [...stripVTControlCharacters(String(text))].length,
    stripANSI: (text: string) => stripVTControlCharacters(String(text)),
    version: VERSION,
    which: (name: string, options?: { PATH?: string; cwd?: string }) => which(name, options),
    write: writeTo,
  };
}

function milliseconds(time: number | Date): number {
  return time instanceof Date ? time.getTime() - Date.now() : time;
}

function which(name: string, options?: { PATH?: string; cwd?: string }): string | null {
  if (name.includes("/")) return findInPath(name, options?.cwd ?? process.cwd()) ?? null;
  return findInPath(name, options?.PATH) ?? null;
}

/** A 64-bit hash. The values differ from those of bun, so they must not be stored for it. */
function hash(data: string | ArrayBuffer | NodeJS.ArrayBufferView, seed = 0): bigint {
  const bytes = typeof data === "string" ? data : ArrayBuffer.isView(data) ? data : new Uint8Array(data);
  return createHash("sha1").update(String(seed)).update(bytes).digest().readBigUInt64LE();
}

class CryptoHasher {
  #hash: ReturnType<typeof createHash>;

  constructor(readonly algorithm: string) {
    this.#hash = createHash(algorithm);
  }

  static hash(algorithm: string, data: string | NodeJS.ArrayBufferView, encoding?: "hex" | "base64"): unknown {
    return new CryptoHasher(algorithm).update(data).digest(encoding);
  }

  update(data: string | NodeJS.ArrayBufferView): this {
    this.#hash.update(data);
    return this;
  }

  digest(encoding?: "hex" | "base64"): unknown {
    return encoding === undefined ? this.#hash.digest() : this.#hash.digest(encoding);
  }
}

function randomUUIDv7(): string {
  const bytes = crypto.getRandomValues(Buffer.alloc(16));
  bytes.writeUIntBE(Date.now(), 0, 6);
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x70;
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
