// Terminals of the server's machine: several, with replay after a lost connection.
import { FitAddon } from "@xterm/addon-fit";
import { Terminal, type ITerminalOptions } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { createEffect, createResource, createSignal, For, on, onCleanup, onMount, Show, type JSX } from "solid-js";
import { address, call, send, type Pty } from "../../api";
import { attempt } from "../../state/actions";
import { listen } from "../../state/mirror";
import { prefs } from "../../state/prefs";
import { t } from "../../text";
import { Button } from "../../ui/button";
import { prose } from "../../ui/text";
import { defineStyles } from "./styles";

/** The wait for the end of a shell after its connection ended without a failure. */
const CLEAN_MS = 1_000;
const RETRY_MS = [300, 600, 1_200, 2_500, 5_000];
const RESIZE_MS = 120;
const SCROLLBACK = 5_000;

export default function TerminalPanel(props: { directory: string }): JSX.Element {
  const query = () => ({ directory: props.directory });
  const [list, { refetch, mutate }] = createResource(
    () => props.directory,
    () => call("GET /pty", { query: query() }),
  );
  const [chosen, setChosen] = createSignal("");
  const current = () => list.latest?.find((pty) => pty.id === chosen()) ?? list.latest?.[0];
  const stop = listen((event) => {
    if (event.type.startsWith("pty.")) void refetch();
  });
  onCleanup(stop);
  const create = () =>
    void attempt(async () => {
      const pty = await call("POST /pty", { query: query(), body: {} });
      mutate((all) => [...(all ?? []).filter((one) => one.id !== pty.id), pty]);
      setChosen(pty.id);
    });
  const close = (pty: Pty) =>
    void attempt(async () => {
      // First here, so that its screen does not try to connect again.
      mutate((all) => all?.filter((one) => one.id !== pty.id));
      await call("DELETE /pty/{ptyID}", { path: { ptyID: pty.id }, query: query() });
      await refetch();
    });
  return (
    <div class="terminals">
      <div class="toolbar">
        <div class="tabs" role="group" aria-label={t.terminal}>
          <For each={list.latest ?? []}>
            {(pty) => (
              <span class="terminal-tab" classList={{ current: current()?.id === pty.id }}>
                <button
                  type="button"
                  class="tab"
                  aria-pressed={current()?.id === pty.id}
                  onClick={() => setChosen(pty.id)}
                >
                  {prose(pty.title || pty.command)}
                </button>
                <Button
                  small
                  kind="quiet"
                  icon="close"
                  label={`${t.closeTerminal}: ${pty.title}`}
                  onClick={() => close(pty)}
                />
              </span>
            )}
          </For>
        </div>
        <span class="grow" />
        <Button small kind="quiet" icon="add" label={t.newTerminal} onClick={create} />
      </div>
      <Show
        when={current()?.id}
        keyed
        fallback={
          <div class="empty">
            <p>{list.loading ? t.loading : t.noTerminals}</p>
            <Show when={!list.loading}>
              <Button onClick={create}>{t.newTerminal}</Button>
            </Show>
          </div>
        }
      >
        {(id) => <Screen id={id} directory={props.directory} pty={() => list.latest?.find((one) => one.id === id)} />}
      </Show>
    </div>
  );
}

const OPTIONS: ITerminalOptions = {
  fontFamily: "JetBrains Mono, ui-monospace, monospace",
  fontSize: 13,
  scrollback: SCROLLBACK,
  cursorBlink: false,
  screenReaderMode: false,
  allowProposedApi: false,
  linkHandler: { activate: () => {} },
};

/** Returns the position in the output that a message of the server names: a zero byte, then the position as JSON. */
function positionIn(bytes: Uint8Array): number | undefined {
  if (bytes[0] !== 0) return undefined;
  return (JSON.parse(new TextDecoder().decode(bytes.slice(1))) as { cursor: number }).cursor;
}

function Screen(props: { id: string; directory: string; pty: () => Pty | undefined }): JSX.Element {
  let box!: HTMLDivElement;
  const [isLost, setLost] = createSignal(false);
  onMount(() => {
    defineStyles();
    const terminal = new Terminal(OPTIONS);
    const fit = new FitAddon();
    terminal.loadAddon(fit);
    terminal.open(box);
    createEffect(
      on(
        () => [prefs.theme, prefs.scheme],
        () => (terminal.options.theme = colours()),
      ),
    );
    let socket: WebSocket | null = null;
    let cursor = 0;
    let ended = false;
    let attemptNumber = 0;
    /** The size that the server knows. */
    let sent = "";
    let timer = 0;
    const connect = async () => {
      try {
        const url = await socketAddress(props.id, props.directory, cursor);
        if (ended) return;
        socket = new WebSocket(url);
        socket.binaryType = "arraybuffer";
        socket.onopen = () => {
          attemptNumber = 0;
          sent = "";
          setLost(false);
          resize();
        };
        socket.onmessage = ({ data }) => {
          if (typeof data !== "string") {
            cursor = positionIn(new Uint8Array(data as ArrayBuffer)) ?? cursor;
            return;
          }
          cursor += data.length;
          terminal.write(data);
        };
        socket.onclose = closed;
      } catch {
        retry();
      }
    };
    const retry = () => {
      if (ended || props.pty()?.status !== "running") return;
      setLost(true);
      timer = window.setTimeout(() => void connect(), RETRY_MS[Math.min(attemptNumber, RETRY_MS.length - 1)]);
      attemptNumber += 1;
    };
    const closed = (event: CloseEvent) => {
      // The server ends the connection when the shell ends, and its event may arrive later.
      if (event.wasClean) timer = window.setTimeout(retry, CLEAN_MS);
      else retry();
    };
    const resize = () => {
      fit.fit();
      // A terminal that has ended has no size. A new connection sends it again.
      if (socket?.readyState !== WebSocket.OPEN || props.pty()?.status !== "running") return;
      const { rows, cols } = terminal;
      if (sent === `${rows} ${cols}`) return;
      sent = `${rows} ${cols}`;
      call("PUT /pty/{ptyID}", {
        path: { ptyID: props.id },
        query: { directory: props.directory },
        body: { size: { rows, cols } },
      }).catch(() => {});
    };
    terminal.onData((data) => socket?.readyState === WebSocket.OPEN && socket.send(data));
    let resizing = 0;
    const observer = new ResizeObserver(() => {
      clearTimeout(resizing);
      resizing = window.setTimeout(resize, RESIZE_MS);
    });
    observer.observe(box);
    void connect();
    terminal.focus();
    onCleanup(() => {
      ended = true;
      clearTimeout(timer);
      clearTimeout(resizing);
      observer.disconnect();
      socket?.close();
      terminal.dispose();
    });
  });
  return (
    <>
      <Show when={isLost()}>
        <div class="banner" role="status">
          {t.terminalLost}
        </div>
      </Show>
      <Show when={props.pty()?.status === "exited"}>
        <div class="banner" role="status">
          {t.exited(props.pty()?.exitCode ?? 0)}
        </div>
      </Show>
      <div ref={box} class="screen" role="region" aria-label={t.terminal} />
    </>
  );
}

/**
 * Returns the address of a terminal's socket. A ticket replaces the password, because pages cannot set headers there.
 */
async function socketAddress(id: string, directory: string, cursor: number): Promise<URL> {
  const token = address("POST /pty/{ptyID}/connect-token", { path: { ptyID: id }, query: { directory } });
  const reply = (await (await send("POST", token, { headers: { "x-opencode-ticket": "1" } })).json()) as {
    ticket: string;
  };
  const url = address("GET /pty/{ptyID}/connect", {
    path: { ptyID: id },
    query: { directory, cursor, ticket: reply.ticket },
  });
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  return url;
}

/** Returns the colours of the theme. */
function colours(): Record<string, string> {
  const probe = document.createElement("span");
  document.body.append(probe);
  const value = (name: string) => {
    probe.style.color = `var(--${name})`;
    return hex(getComputedStyle(probe).color);
  };
  const result = {
    background: value("bg"),
    foreground: value("text"),
    cursor: value("accent"),
    selectionBackground: `${value("accent")}44`,
    black: value("muted"),
    red: value("red"),
    green: value("green"),
    yellow: value("yellow"),
    blue: value("blue"),
    magenta: value("purple"),
    cyan: value("cyan"),
    white: value("text"),
    brightBlack: value("muted"),
    brightRed: value("red"),
    brightGreen: value("green"),
    brightYellow: value("yellow"),
    brightBlue: value("blue"),
    brightMagenta: value("purple"),
    brightCyan: value("cyan"),
    brightWhite: value("text"),
  };
  probe.remove();
  return result;
}

function hex(colour: string): string {
  const parts = colour
    .match(/[\d.]+/g)
    ?.slice(0, 3)
    .map(Number) ?? [0, 0, 0];
  return `#${parts.map((part) => Math.round(part).toString(16).padStart(2, "0")).join("")}`;
}
