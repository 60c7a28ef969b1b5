/** The names that `import … from "bun"` finds on Node. */
export const BUN_EXPORTS = [
  "$", "ArrayBufferSink", "CryptoHasher", "Glob", "argv", "deepEquals", "env", "file", "fileURLToPath", "gunzipSync",
  "gzipSync", "hash", "inspect", "main", "nanoseconds", "pathToFileURL", "randomUUIDv7", "resolveSync", "revision",
  "serve", "sleep", "sleepSync", "spawn", "spawnSync", "stderr", "stdin", "stdout", "stringWidth", "stripANSI",
  "version", "which", "write",
] as const;
