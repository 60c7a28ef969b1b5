/** `Bun.file` and `Bun.write` on Node. */
import { createReadStream, createWriteStream, statSync } from "node:fs";
import { mkdir, readFile, stat, unlink, writeFile } from "node:fs/promises";
import { dirname, extname } from "node:path";
import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";

const TYPES: Record<string, string> = {
  ".json": "application/json;charset=utf-8",
  ".txt": "text/plain;charset=utf-8",
  ".md": "text/markdown;charset=utf-8",
  ".html": "text/html;charset=utf-8",
  ".css": "text/css;charset=utf-8",
  ".js": "text/javascript;charset=utf-8",
  ".mjs": "text/javascript;charset=utf-8",
  ".ts": "text/javascript;charset=utf-8",
  ".png": "image/png",
  ".jpg": "image/jpeg",
  ".jpeg": "image/jpeg",
  ".gif": "image/gif",
  ".webp": "image/webp",
  ".svg": "image/svg+xml",
  ".pdf": "application/pdf",
};

/** A file that is read when it is used. It is a Blob, so that `Response` and `instanceof` accept it. */
export class BunFile extends Blob {
  readonly name: string;
  readonly #type: string;

  constructor(path: string, options?: { type?: string }) {
    super([]);
    this.name = path;
    this.#type = options?.type ?? TYPES[extname(path).toLowerCase()] ?? "application/octet-stream";
  }

  override get size(): number {
    return statSync(this.name, { throwIfNoEntry: false })?.size ?? 0;
  }

  override get type(): string {
    return this.#type;
  }

  get lastModified(): number {
    return Math.round(statSync(this.name, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
  }

  override text(): Promise<string> {
    return readFile(this.name, "utf8");
  }

  async json(): Promise<unknown> {
    return JSON.parse(await this.text()) as unknown;
  }

  override async arrayBuffer(): Promise<ArrayBuffer> {
    return new Uint8Array(await readFile(this.name)).buffer;
  }

  override async bytes(): Promise<Uint8Array<ArrayBuffer>> {
    return new Uint8Array(await readFile(this.name));
  }

  override stream(): any {
    return Readable.toWeb(createReadStream(this.name));
  }

  override slice(start?: number, end?: number, type?: string): Blob {
    const { name } = this;
    const part = new BunFile(name, { type: type ?? this.type });
    const read = async () => (await readFile(name)).subarray(start, end);
    return Object.assign(part, {
      text: async () => (await read()).toString("utf8"),
      arrayBuffer: async () => new Uint8Array(await read()).buffer,
      bytes: async () => new Uint8Array(await read()),
    });
  }

  async exists(): Promise<boolean> {
    return (await stat(this.name).catch(() => undefined))?.isFile() ?? false;
  }

  stat(): Promise<unknown> {
    return stat(this.name);
  }

  write(data: unknown): Promise<number> {
    return writeTo(this, data);
  }

  async delete(): Promise<void> {
    await unlink(this.name);
  }

  unlink(): Promise<void> {
    return this.delete();
  }

  writer(): { write(data: string | Uint8Array): number; flush(): number; end(): Promise<void> } {
    const stream = createWriteStream(this.name);
    let failure: Error | undefined;
    stream.on("error", (error) => (failure = error));
    return {
      write(data) {
        stream.write(data);
        return Buffer.byteLength(data);
      },
      flush: () => 0,
      end: () =>
        new Promise((resolve, reject) => stream.end(() => (failure === undefined ? resolve() : reject(failure)))),
    };
  }
}

export function openFile(path: string | URL, options?: { type?: string }): BunFile {
  return new BunFile(toPath(path), options);
}

/** Writes data to a file and creates its directory. Returns the number of bytes. */
export async function writeTo(destination: string | URL | BunFile, data: unknown): Promise<number> {
  const path = destination instanceof BunFile ? destination.name : toPath(destination);
  const bytes = await toBytes(data);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, bytes);
  return bytes.length;
}

async function toBytes(data: unknown): Promise<Uint8Array> {
  if (typeof data === "string") return Buffer.from(data);
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  if (data instanceof Blob || data instanceof Response) return new Uint8Array(await data.arrayBuffer());
  if (Array.isArray(data)) return Buffer.concat(await Promise.all(data.map(toBytes)));
  throw new TypeError("Bun.write accepts a string, a buffer, a Blob or a Response");
}

function toPath(path: string | URL): string {
  const text = String(path);
  return text.startsWith("file://") ? fileURLToPath(text) : text;
}
