// The dialog that connects a provider: a key or a sign-in, and then the choice of a model.
import { createSignal, For, Show, type JSX } from "solid-js";
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

/** A sign-in that has begun in the browser. */
interface Begun {
  url: string;
  instructions: string;
  method: string;
  index: number;
}

/** What the dialog knows of its provider, and how it ends. */
interface Provider {
  id: string;
  name: string;
  methods: ProviderAuthMethod[];
  /** Called when the provider is connected, with what to tell the user. */
  onConnected: (said: string) => void;
}

export function connectDialog(id: string, name: string, methods: ProviderAuthMethod[], onDone: () => void): void {
  openDialog((dialog) => {
    const onConnected = (said: string) => {
      toast({ text: said, kind: "good" });
      dialog.close();
      onDone();
      void offerModels(id);
    };
    return (
      <Dialog title={name} onClose={dialog.close}>
        <Connect provider={{ id, name, methods, onConnected }} />
      </Dialog>
    );
  });
}

function Connect(props: { provider: Provider }): JSX.Element {
  const [begun, setBegun] = createSignal<Begun | null>(null);
  const path = () => ({ providerID: props.provider.id });
  const complete = (index: number, code = "") =>
    attempt(async () => {
      await call("POST /provider/{providerID}/oauth/callback", {
        path: path(),
        query: { directory: currentDirectory() },
        body: { method: index, ...(code ? { code } : {}) },
        long: true,
      });
      props.provider.onConnected(t.providerConnected(props.provider.name));
    });
  const begin = (index: number, inputs: Record<string, string>) =>
    attempt(async () => {
      const reply = await call("POST /provider/{providerID}/oauth/authorize", {
        path: path(),
        query: { directory: currentDirectory() },
        body: { method: index, inputs },
        long: true,
      });
      if (!reply || !/^https?:/.test(reply.url)) return;
      setBegun({ url: reply.url, instructions: reply.instructions, method: reply.method, index });
      if (reply.method === "auto") void complete(index);
    });
  return (
    <Show
      when={begun()}
      fallback={
        <>
          <KeyForm provider={props.provider} />
          <SignIns methods={props.provider.methods} onBegin={(index, inputs) => void begin(index, inputs)} />
        </>
      }
    >
      {(now) => <InBrowser begun={now()} onCode={(code) => void complete(now().index, code)} />}
    </Show>
  );
}

/** The field for a key, which the server checks with the provider. */
function KeyForm(props: { provider: Provider }): JSX.Element {
  const [key, setKey] = createSignal("");
  const [isChecking, setChecking] = createSignal(false);
  const [refusal, setRefusal] = createSignal("");
  const check = async () => {
    const { id: providerID, name, onConnected } = props.provider;
    await call("PUT /auth/{providerID}", { path: { providerID }, body: { type: "api", key: key().trim() } });
    const query = { directory: currentDirectory() };
    const checked = await call("POST /auth/{providerID}/verify", { path: { providerID }, query });
    const why = plain(checked.message ?? "");
    // The dialog stays open, so that the key can be corrected.
    if (checked.status === "refused") setRefusal(t.keyRefused(name, why));
    else if (checked.status === "accepted") onConnected(t.keyAccepted(name));
    else if (checked.status === "unreachable") onConnected(t.keyUnreached(name, why));
    else onConnected(t.providerConnected(name));
  };
  const save = async () => {
    if (isChecking()) return;
    setChecking(true);
    setRefusal("");
    await attempt(check);
    setChecking(false);
  };
  return (
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
    </>
  );
}

interface Prompt {
  type: string;
  key: string;
  message: string;
  options?: { label: string; value: string }[];
}

/** Returns what a plugin asks before a sign-in. */
function promptsOf(method: ProviderAuthMethod): Prompt[] {
  return "prompts" in method && Array.isArray(method.prompts) ? (method.prompts as Prompt[]) : [];
}

/** The ways to sign in, each with what it asks first. */
function SignIns(props: {
  methods: ProviderAuthMethod[];
  onBegin: (index: number, inputs: Record<string, string>) => void;
}): JSX.Element {
  const [inputs, setInputs] = createSignal<Record<string, string>>({});
  const signIns = () => props.methods.map((method, index) => ({ method, index }));
  return (
    <For each={signIns().filter(({ method }) => method.type === "oauth")}>
      {({ method, index }) => (
        <div class="column">
          <For each={promptsOf(method)}>
            {(prompt) => (
              <Ask prompt={prompt} onInput={(value) => setInputs((all) => ({ ...all, [prompt.key]: value }))} />
            )}
          </For>
          <Button onClick={() => props.onBegin(index, inputs())}>{prose(method.label)}</Button>
        </div>
      )}
    </For>
  );
}

function Ask(props: { prompt: Prompt; onInput: (value: string) => void }): JSX.Element {
  return (
    <label class="column">
      <span>{prose(props.prompt.message)}</span>
      <Show
        when={props.prompt.options}
        fallback={<input class="field" onInput={(event) => props.onInput(event.currentTarget.value)} />}
      >
        {(options) => (
          <select class="field" onChange={(event) => props.onInput(event.currentTarget.value)}>
            <For each={options()}>{(option) => <option value={option.value}>{prose(option.label)}</option>}</For>
          </select>
        )}
      </Show>
    </label>
  );
}

/** What the user does in the browser, and the field for the code that the page displays. */
function InBrowser(props: { begun: Begun; onCode: (code: string) => void }): JSX.Element {
  const [code, setCode] = createSignal("");
  return (
    <>
      <p>{prose(props.begun.instructions)}</p>
      <a href={props.begun.url} target="_blank" rel="noopener noreferrer">
        {t.openPage}
      </a>
      <Show
        when={props.begun.method === "code"}
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
          <Button kind="primary" disabled={!code().trim()} onClick={() => props.onCode(code().trim())}>
            {t.done}
          </Button>
        </div>
      </Show>
    </>
  );
}
