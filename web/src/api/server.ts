// The server that the app uses: the one that sent the page, or another one named by `?server=` in the address.
//
// A password is kept in memory, and for the life of the tab in its session storage, so that a reload does not ask again.
// It is only ever sent in a header.

export interface Credentials {
  username: string;
  password: string;
}

const STORE = "codewright.credentials";
const PAGE = new URL(".", location.href);

/** Returns the address of another server that the page's address names. */
export function foreignServer(address: URL): URL | null {
  const named = address.searchParams.get("server");
  if (!named) return null;
  try {
    const url = new URL(named.includes("://") ? named : `http://${named}`);
    if (!/^https?:$/.test(url.protocol) || url.username || url.password) return null;
    return new URL(`${url.origin}${url.pathname.replace(/\/*$/, "/")}`);
  } catch {
    return null;
  }
}

/** The address that paths of routes are appended to. It ends with a slash. */
export const base: URL = foreignServer(new URL(location.href)) ?? new URL(PAGE.pathname, PAGE.origin);
/** Whether the page comes from the server that it uses. */
export const isOwn = base.origin === location.origin;

let credentials: Credentials | null = read();

function read(): Credentials | null {
  try {
    const stored: unknown = JSON.parse(sessionStorage.getItem(STORE) ?? "null");
    if (stored === null || typeof stored !== "object" || !("for" in stored) || stored.for !== base.href) return null;
    const { username, password } = stored as unknown as Credentials;
    return typeof username === "string" && typeof password === "string" ? { username, password } : null;
  } catch {
    // Storage is disabled or holds something else.
    return null;
  }
}

/** Uses other credentials from now on, or none. */
export function setCredentials(next: Credentials | null): void {
  credentials = next;
  try {
    if (next) sessionStorage.setItem(STORE, JSON.stringify({ for: base.href, ...next }));
    else sessionStorage.removeItem(STORE);
  } catch {
    // Without storage a reload asks again.
  }
}

/** Returns the headers and the mode of credentials of a request. */
export function access(): { headers: Record<string, string>; credentials: RequestCredentials } {
  if (!credentials) return { headers: {}, credentials: isOwn ? "same-origin" : "omit" };
  const bytes = new TextEncoder().encode(`${credentials.username}:${credentials.password}`);
  const encoded = btoa(String.fromCharCode(...bytes));
  return { headers: { Authorization: `Basic ${encoded}` }, credentials: "omit" };
}
