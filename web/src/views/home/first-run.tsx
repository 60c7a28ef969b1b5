// What to do before the first prompt if no model may be used: sign in to a provider, use a local server, or choose a
// service for everybody. Nothing is sent to a provider that the user did not choose.
import { createMemo, createSignal, For, type JSX } from "solid-js";
import { openDialog } from "../../app/dialogs";
import { openModels } from "../../app/pickers";
import { go } from "../../app/router";
import { call } from "../../api";
import { attempt } from "../../state/actions";
import { isPublic, needsChoice } from "../../state/choice";
import { placeOf } from "../../state/place";
import { t } from "../../text";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { prose } from "../../ui/text";
import { toast } from "../../ui/toast";
import { connectProvider } from "../settings/connect";
import { POPULAR } from "../settings/popular";

/** The name of the provider that is a server of the user. */
const OWN_ID = "local";

interface Props {
  directory: string;
  /** Called when something was chosen. */
  onDone: () => void;
}

export function FirstRun(props: Props): JSX.Element {
  const place = createMemo(() => placeOf(props.directory));
  const free = () =>
    (place().providers()?.providers ?? []).filter(
      (provider) => isPublic(provider) && Object.keys(provider.models).length > 0,
    );
  const [isLooking, setLooking] = createSignal(false);
  const look = async () => {
    setLooking(true);
    // The server looks for local model servers when it opens a directory.
    await attempt(async () => {
      await call("POST /instance/dispose", { query: { directory: props.directory } });
      await Promise.all([place().providers.refresh(), place().config.refresh()]);
    });
    setLooking(false);
    if (needsChoice(place())) toast({ text: t.noLocalServer, kind: "bad" });
    else props.onDone();
  };
  return (
    <div class="first-run">
      <p>{t.firstRunWhy}</p>
      <section>
        <h3>{t.firstRunProvider}</h3>
        <div class="row wrap">
          <For each={POPULAR.slice(0, 5)}>
            {([id, name]) => (
              <Button onClick={() => void connectProvider(props.directory, id, name, props.onDone)}>{name}</Button>
            )}
          </For>
          <Button
            kind="quiet"
            onClick={() => {
              props.onDone();
              go({ name: "settings", page: "providers" });
            }}
          >
            {t.allProviders}
          </Button>
        </div>
      </section>
      <section>
        <h3>{t.firstRunLocal}</h3>
        <p class="muted">{t.firstRunLocalHint}</p>
        <div class="row wrap">
          <Button disabled={isLooking()} onClick={() => void look()}>
            {isLooking() ? t.looking : t.lookAgain}
          </Button>
          <Button kind="quiet" onClick={() => ownServerDialog(props.directory, props.onDone)}>
            {t.otherAddress}
          </Button>
        </div>
      </section>
      <For each={free()}>
        {(provider) => (
          <section>
            <h3>{t.firstRunFree}</h3>
            <p class="muted">
              {t.firstRunFreeHint(prose(provider.name || provider.id), Object.keys(provider.models).length)}
            </p>
            <Button
              onClick={() => {
                props.onDone();
                openModels(provider.id);
              }}
            >
              {t.chooseFree(prose(provider.name || provider.id))}
            </Button>
          </section>
        )}
      </For>
      <p class="muted">{t.firstRunTerminal}</p>
    </div>
  );
}

/** The same as a dialog, for a prompt that cannot be sent. */
export function firstRunDialog(directory: string): void {
  openDialog((dialog) => (
    <Dialog title={t.firstRunTitle} onClose={dialog.close}>
      <p class="notice warn">{t.promptKept}</p>
      <FirstRun directory={directory} onDone={dialog.close} />
    </Dialog>
  ));
}

/** The card on home. */
export default function FirstRunCard(props: { directory: string }): JSX.Element {
  return (
    <section class="card" aria-labelledby="first-run">
      <h2 id="first-run">{t.firstRunTitle}</h2>
      <FirstRun directory={props.directory} onDone={() => {}} />
    </section>
  );
}

/**
 * Asks for the address and the model of a server with the interface of OpenAI, and writes them to the configuration.
 */
function ownServerDialog(directory: string, onDone: () => void): void {
  openDialog((dialog) => {
    const [address, setAddress] = createSignal("http://localhost:8000/v1");
    const [model, setModel] = createSignal("");
    const isValid = () => /^https?:\/\/[^\s/]+/.test(address().trim()) && model().trim() !== "";
    const save = () =>
      attempt(async () => {
        const provider = {
          npm: "@ai-sdk/openai-compatible",
          name: "Local server",
          options: { baseURL: address().trim() },
          models: { [model().trim()]: {} },
        };
        const change = { provider: { [OWN_ID]: provider }, model: `${OWN_ID}/${model().trim()}` };
        await call("PATCH /global/config", { body: change });
        const place = placeOf(directory);
        await Promise.all([place.providers.refresh(), place.config.refresh()]);
        dialog.close();
        onDone();
      });
    return (
      <Dialog
        title={t.otherAddress}
        onClose={dialog.close}
        foot={
          <>
            <Button onClick={dialog.close}>{t.cancel}</Button>
            <Button kind="primary" disabled={!isValid()} onClick={() => void save()}>
              {t.save}
            </Button>
          </>
        }
      >
        <label class="column">
          <span>{t.baseUrl}</span>
          <input
            class="field mono"
            inputmode="url"
            autocapitalize="off"
            spellcheck={false}
            autofocus
            value={address()}
            onInput={(event) => setAddress(event.currentTarget.value)}
          />
        </label>
        <label class="column">
          <span>{t.modelId}</span>
          <input
            class="field mono"
            autocapitalize="off"
            spellcheck={false}
            placeholder="qwen3-coder"
            value={model()}
            onInput={(event) => setModel(event.currentTarget.value)}
          />
        </label>
        <p class="muted">{t.ownServerHint}</p>
      </Dialog>
    );
  });
}
