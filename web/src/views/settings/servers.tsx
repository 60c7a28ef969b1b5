// The MCP servers of the user (`mcp`): their state, and new ones.
import { createSignal, Show, type JSX } from "solid-js";
import type { Config } from "../../api";
import { currentDirectory } from "../../state/actions";
import { placeOf } from "../../state/place";
import { t } from "../../text";
import { Button } from "../../ui/button";
import { Segments } from "../../ui/tabs";
import { McpList } from "../status/mcp";
import { ownConfig, RemoveButton, WrittenTo } from "./change";
import { pairs, words } from "./parse";

type Kind = "local" | "remote";

export function ServerSettings(): JSX.Element {
  const { own, change } = ownConfig();
  const isOwn = (server: string) => own.latest?.mcp?.[server] !== undefined;
  const [kind, setKind] = createSignal<Kind>("local");
  const [name, setName] = createSignal("");
  const [target, setTarget] = createSignal("");
  const [more, setMore] = createSignal("");
  const taken = () => placeOf(currentDirectory()).mcp()?.[name().trim()] !== undefined;
  const problem = () => {
    if (name().trim() && !/^[\w-]+$/.test(name().trim())) return t.serverNameBad;
    if (taken()) return t.serverExists(name().trim());
    if (kind() === "remote" && target().trim() && !/^https?:\/\/[^\s/]+/.test(target().trim()))
      return t.serverAddressBad;
    if (pairs(more()) === null) return t.pairsBad;
    return "";
  };
  const canAdd = () => name().trim() !== "" && target().trim() !== "" && problem() === "";
  const add = async () => {
    if (!canAdd()) return;
    const values = pairs(more()) ?? {};
    const hasValues = Object.keys(values).length > 0;
    const server =
      kind() === "local"
        ? { type: "local" as const, command: words(target()), ...(hasValues ? { environment: values } : {}) }
        : { type: "remote" as const, url: target().trim(), ...(hasValues ? { headers: values } : {}) };
    const body: Config = { mcp: { [name().trim()]: server } };
    if (!(await change(body))) return;
    setName("");
    setTarget("");
    setMore("");
  };
  return (
    <div class="settings">
      <section>
        <h2>
          {t.mcpServers} <code class="muted">mcp</code>
        </h2>
        <McpList
          directory={currentDirectory()}
          more={(server) => (
            <Show when={isOwn(server)}>
              <RemoveButton name={server} onRemove={() => void change({ mcp: { [server]: null } })} />
            </Show>
          )}
        />
      </section>
      <section>
        <h2>{t.addServer}</h2>
        <form
          class="column"
          onSubmit={(event) => {
            event.preventDefault();
            void add();
          }}
        >
          <Segments
            label={t.serverKind}
            value={kind()}
            onChange={setKind}
            options={[
              { name: "local", label: t.localServer },
              { name: "remote", label: t.remoteServer },
            ]}
          />
          <label class="column">
            <span>{t.name}</span>
            <input
              class="field"
              placeholder="docs"
              autocapitalize="off"
              spellcheck={false}
              value={name()}
              onInput={(event) => setName(event.currentTarget.value)}
            />
          </label>
          <label class="column">
            <span>
              {kind() === "local" ? t.command : t.address}{" "}
              <code class="muted">{kind() === "local" ? "command" : "url"}</code>
            </span>
            <input
              class="field mono"
              placeholder={
                kind() === "local" ? "npx -y @modelcontextprotocol/server-everything" : "https://mcp.example.com/mcp"
              }
              autocapitalize="off"
              spellcheck={false}
              value={target()}
              onInput={(event) => setTarget(event.currentTarget.value)}
            />
          </label>
          <label class="column">
            <span>
              {kind() === "local" ? t.variables : t.headers}{" "}
              <code class="muted">{kind() === "local" ? "environment" : "headers"}</code>
            </span>
            <textarea
              class="field mono"
              rows={2}
              placeholder={kind() === "local" ? "TOKEN={env:DOCS_TOKEN}" : "Authorization: Bearer {env:DOCS_TOKEN}"}
              spellcheck={false}
              value={more()}
              onInput={(event) => setMore(event.currentTarget.value)}
            />
          </label>
          <Show when={problem()}>
            <p class="notice bad" role="alert">
              {problem()}
            </p>
          </Show>
          <div class="row">
            <Button type="submit" kind="primary" disabled={!canAdd()}>
              {t.addServer}
            </Button>
          </div>
        </form>
        <WrittenTo />
      </section>
    </div>
  );
}
