// The server that the app uses: the one that sent the page, or another one named by `?server=` in the address.
//
// The server of the page gets the password once. Then a cookie that scripts cannot read and a key, which is stored for
// the pages of this origin, stand for it. Another server cannot have such a cookie: its password is kept in memory, and
// for the life of the tab in its session storage, so that a reload does not ask again. It is only ever sent in a
// header.

export interface Credentials {
  username: string;
  password: string;
}

const STORE = "codewright.credentials";
const KEY_STORE = "codewright.key";
/** The header of the key. */
const KEY_HEADER = "X-Codewright-Key";
/** The deadline of a sign-in and of a sign-out. */
const SIGN_IN_MS = 15_000;
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

/** The key of the sign-in, if there is one. */
let key: string | null = readKey();

function readKey(): string | null {
  try {
    return isOwn ? localStorage.getItem(KEY_STORE) : null;
  } catch {
    return null;
  }
}

function setKey(next: string | null): void {
  key = next;
  try {
    if (next) localStorage.setItem(KEY_STORE, next);
    else localStorage.removeItem(KEY_STORE);
  } catch {
    // Without storage a reload asks again.
  }
}

// Another tab signed in or out.
addEventListener("storage", (event) => {
  if (event.key === KEY_STORE) key = event.newValue;
});

/** Whether the user has signed in, so that there is something to sign out of. */
export function isSignedIn(): boolean {
  return key !== null || credentials !== null;
}

function basic({ username, password }: Credentials): string {
  const bytes = new TextEncoder().encode(`${username}:${password}`);
  return `Basic ${btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""))}`;
}

/** Signs in. Returns the status of the reply and, if it is a refusal, how long to wait. */
export async function signIn(given: Credentials): Promise<{ status: number; waitSeconds: number }> {
  const headers = { Authorization: basic(given) };
  const signal = AbortSignal.timeout(SIGN_IN_MS);
  const waitOf = (response: Response) => Number(response.headers.get("retry-after")) || 0;
  if (isOwn) {
    const response = await fetch(new URL("sign-in", base), {
      method: "POST",
      headers,
      credentials: "same-origin",
      signal,
    });
    const reply = response.ok ? ((await response.json()) as { key?: unknown }) : {};
    if (typeof reply.key === "string") {
      setCredentials(null);
      setKey(reply.key);
      return { status: 200, waitSeconds: 0 };
    }
    if (response.status !== 404) return { status: response.status, waitSeconds: waitOf(response) };
  }
  // A server without sign-ins, or of another origin, gets the password with each request.
  const response = await fetch(new URL("global/health", base), { headers, credentials: "omit", signal });
  if (response.ok) setCredentials(given);
  return { status: response.status, waitSeconds: waitOf(response) };
}

/** Signs out here, and on the server if it can be reached. */
export async function signOut(): Promise<void> {
  const { headers, credentials: mode } = access();
  try {
    if (key)
      await fetch(new URL("sign-out", base), {
        method: "POST",
        headers,
        credentials: mode,
        signal: AbortSignal.timeout(SIGN_IN_MS),
      });
  } finally {
    setKey(null);
    setCredentials(null);
  }
}

/** Forgets a sign-in that the server does not know any more, unless another tab has begun a new one. */
export function forgetSignIn(): void {
  const stored = readKey();
  if (stored === key) setKey(null);
  else key = stored;
  setCredentials(null);
}

/** Returns the headers and the mode of credentials of a request. */
export function access(): { headers: Record<string, string>; credentials: RequestCredentials } {
  if (credentials) return { headers: { Authorization: basic(credentials) }, credentials: "omit" };
  return { headers: key ? { [KEY_HEADER]: key } : {}, credentials: isOwn ? "same-origin" : "omit" };
}
