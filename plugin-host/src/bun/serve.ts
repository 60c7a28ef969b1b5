/** `Bun.serve` on Node: a small HTTP server, as sign-ins use it for their callback. WebSockets are not supported. */
import { createServer, type Server } from "node:http";
import net, { isIPv4, type AddressInfo } from "node:net";
import { Readable } from "node:stream";

interface ServeOptions {
  port?: number | string;
  hostname?: string;
  fetch(request: Request, server: unknown): Response | Promise<Response>;
  error?(error: Error): Response | Promise<Response>;
  routes?: unknown;
  websocket?: unknown;
}

export function serve(options: ServeOptions): unknown {
  if (options.websocket !== undefined || options.routes !== undefined || typeof options.fetch !== "function") {
    throw new Error(
      "Bun.serve in the plugin host supports `fetch` only, without routes and WebSockets; use bun for the others",
    );
  }
  const port = Number(options.port ?? 3000);
  const server = createServer((incoming, outgoing) => {
    const answer = async (): Promise<Response> => {
      const hasBody = incoming.method !== "GET" && incoming.method !== "HEAD";
      const request = new Request(`http://${incoming.headers.host ?? "localhost"}${incoming.url ?? "/"}`, {
        method: incoming.method ?? "GET",
        headers: Object.entries(incoming.headers).flatMap(([name, value]): [string, string][] => [
          [name, String(value)],
        ]),
        ...(hasBody ? { body: Readable.toWeb(incoming) as never, duplex: "half" } : {}),
      } as RequestInit);
      return options.fetch(request, handle);
    };
    answer()
      .catch((error: Error) => options.error?.(error) ?? new Response("Internal Server Error", { status: 500 }))
      .then(async (response) => {
        outgoing.writeHead(response.status, Object.fromEntries(response.headers));
        outgoing.end(Buffer.from(await response.arrayBuffer()));
      })
      .catch(() => outgoing.destroy());
  });
  server.on("error", (error) => console.error("Bun.serve failed:", error));
  listen(server, port, options.hostname);
  const handle = {
    hostname: options.hostname ?? "localhost",
    get port() {
      return (server.address() as AddressInfo | null)?.port ?? port;
    },
    get url() {
      return new URL(`http://${this.hostname}:${this.port}/`);
    },
    stop(force?: boolean) {
      if (force === true) server.closeAllConnections();
      return new Promise<void>((resolve) => server.close(() => resolve()));
    },
    ref: () => void server.ref(),
    unref: () => void server.unref(),
  };
  return handle;
}

/**
 * Listens at once, because plugins read the port of `Bun.serve` in the same moment. Node binds a named host only after
 * it has looked the name up, so an address is bound by a function that Node does not document; without it the port is
 * known later.
 */
function listen(server: Server, port: number, hostname: string | undefined): void {
  const address = hostname === "localhost" ? "127.0.0.1" : hostname;
  const bind = (net as unknown as { _createServerHandle?: (address: string, port: number, family: number) => unknown })
    ._createServerHandle;
  const bound = address !== undefined && isIPv4(address) ? bind?.(address, port, 4) : undefined;
  // A number is an error, which the usual way reports.
  if (typeof bound === "object" && bound !== null) server.listen(bound);
  else server.listen(port, hostname);
}
