// The dialog that connects a provider: a key or a sign-in, and then the choice of a model.
import { createSignal, For, Show } from "solid-js";
import { openDialog } from "../../app/dialogs";
import { openModels } from "../../app/pickers";
import { call, type ProviderAuthMethod } from "../../api";
import { attempt, currentDirectory } from "../../state/actions";
import { placeOf } from "../../state/place";
import { t } from "../../text";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { plain, prose } from "../../ui/text";
import { toast } from "../../ui/toast";

/** Connects a provider whose ways to sign in are not known yet. */
export async function connectProvider(directory: string, id: string, name: string, onDone: () => void): Promise<void> {
  const methods = await attempt(() => call("GET /provider/auth", { query: { directory } }));
  if (methods) connectDialog(id, name, methods[id] ?? [], onDone);
}

/** Loads the models of a provider that was just connected, and offers them. */
async function offerModels(providerID: string): Promise<void> {
  const place = placeOf(currentDirectory());
  await place.providers.refresh();
  if (place.providers()?.providers.some((provider) => provider.id === providerID)) openModels(providerID);
}

export function connectDialog(
  providerID: string,
  name: string,
  methods: ProviderAuthMethod[],
  onDone: () => void,
): void {
  openDialog((dialog) => {
    const [key, setKey] = createSignal("");
    const [begun, setBegun] = createSignal<{ url: string; instructions: string; method: string; index: number } | null>(
      null,
    );
    const [code, setCode] = createSignal("");
    const [inputs, setInputs] = createSignal<Record<string, string>>({});
    const [isChecking, setChecking] = createSignal(false);
    const [refusal, setRefusal] = createSignal("");
    const finish = (said = t.providerConnected(name)) => {
      toast({ text: said, kind: "good" });
      dialog.close();
      onDone();
      void offerModels(providerID);
    };
    const save = async () => {
      if (isChecking()) return;
      setChecking(true);
      setRefusal("");
      await attempt(async () => {
        await call("PUT /auth/{providerID}", { path: { providerID }, body: { type: "api", key: key().trim() } });
        const check = await call("POST /auth/{providerID}/verify", {
          path: { providerID },
          query: { directory: currentDirectory() },
        });
        const why = plain(check.message ?? "");
        // The dialog stays open, so that the key can be corrected.
        if (check.status === "refused") setRefusal(t.keyRefused(name, why));
        else
          finish(
            check.status === "accepted"
              ? t.keyAccepted(name)
              : check.status === "unreachable"
                ? t.keyUnreached(name, why)
                : t.providerConnected(name),
          );
      });
      setChecking(false);
    };
    const begin = (index: number) =>
      attempt(async () => {
        const reply = await call("POST /provider/{providerID}/oauth/authorize", {
          path: { providerID },
          query: { directory: currentDirectory() },
          body: { method: index, inputs: inputs() },
          long: true,
        });
        if (!reply || !/^https?:/.test(reply.url)) return;
        setBegun({ url: reply.url, instructions: reply.instructions, method: reply.method, index });
        if (reply.method === "auto") void complete(index);
      });
    const complete = (index: number) =>
      attempt(async () => {
        await call("POST /provider/{providerID}/oauth/callback", {
          path: { providerID },
          query: { directory: currentDirectory() },
          body: { method: index, ...(code().trim() ? { code: code().trim() } : {}) },
          long: true,
        });
        finish();
      });
    const prompts = (method: ProviderAuthMethod) =>
      "prompts" in method && Array.isArray(method.prompts)
        ? (method.prompts as {
            type: string;
            key: string;
            message: string;
            options?: { label: string; value: string }[];
          }[])
        : [];
    return (
      <Dialog title={name} onClose={dialog.close}>
        <Show
          when={begun()}
          fallback={
            <>
              <label class="column">
                <span>{t.apiKey}</span>
                <input
                  class="field"
                  type="password"
                  autocomplete="off"
                  autofocus
                  value={key()}
                  onInput={(event) => setKey(event.currentTarget.value)}
                  onKeyDown={(event) => event.key === "Enter" && key().trim() && void save()}
                />
              </label>
              <Show when={refusal()}>
                <p class="notice bad" role="alert">
                  {refusal()}
                </p>
              </Show>
              <div class="row">
                <Button kind="primary" disabled={!key().trim() || isChecking()} onClick={() => void save()}>
                  {isChecking() ? t.checkingKey : t.save}
                </Button>
              </div>
              <For
                each={methods
                  .map((method, index) => ({ method, index }))
                  .filter(({ method }) => method.type === "oauth")}
              >
                {({ method, index }) => (
                  <div class="column">
                    <For each={prompts(method)}>
                      {(prompt) => (
                        <label class="column">
                          <span>{prose(prompt.message)}</span>
                          <Show
                            when={prompt.options}
                            fallback={
                              <input
                                class="field"
                                onInput={(event) => {
                                  const value = event.currentTarget.value;
                                  setInputs((all) => ({ ...all, [prompt.key]: value }));
                                }}
                              />
                            }
                          >
                            {(options) => (
                              <select
                                class="field"
                                onChange={(event) => {
                                  const value = event.currentTarget.value;
                                  setInputs((all) => ({ ...all, [prompt.key]: value }));
                                }}
                              >
                                <For each={options()}>
                                  {(option) => <option value={option.value}>{prose(option.label)}</option>}
                                </For>
                              </select>
                            )}
                          </Show>
                        </label>
                      )}
                    </For>
                    <Button onClick={() => void begin(index)}>{prose(method.label)}</Button>
                  </div>
                )}
              </For>
            </>
          }
        >
          {(now) => (
            <>
              <p>{prose(now().instructions)}</p>
              <a href={now().url} target="_blank" rel="noopener noreferrer">
                {t.openPage}
              </a>
              <Show
                when={now().method === "code"}
                fallback={
                  <p class="muted row">
                    <span class="spinner" />
                    {t.waitingForBrowser}
                  </p>
                }
              >
                <div class="row">
                  <input
                    class="field"
                    aria-label={t.code}
                    placeholder={t.pasteCode}
                    value={code()}
                    onInput={(event) => setCode(event.currentTarget.value)}
                  />
                  <Button kind="primary" disabled={!code().trim()} onClick={() => void complete(now().index)}>
                    {t.done}
                  </Button>
                </div>
              </Show>
            </>
          )}
        </Show>
      </Dialog>
    );
  });
}
