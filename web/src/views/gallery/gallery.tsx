// The gallery: every component in its states.
import { createSignal, For, type JSX } from "solid-js";
import { t } from "../../text";
import { Button } from "../../ui/button";
import { Code } from "../../ui/code";
import { Dialog } from "../../ui/dialog";
import { Diff } from "../../ui/diff";
import { Markdown } from "../../ui/markdown";
import { Menu } from "../../ui/menu";
import { Output } from "../../ui/output";
import { Picker } from "../../ui/picker";
import { Segments, Tabs } from "../../ui/tabs";
import { toast } from "../../ui/toast";
import { VirtualList } from "../../ui/virtual/virtual";
import { openDialog } from "../../app/dialogs";
import { TodoList } from "../session/tools";
import { Page } from "../settings/page";

const PATCH = `--- a/src/sum.ts
+++ b/src/sum.ts
@@ -1,5 +1,6 @@
 export function sum(values: number[]): number {
-  let total = 1;
+  let total = 0;
   for (const value of values) total += value;
+  // Rounded, because cents add up.
   return total;
 }
`;
const MARKDOWN = `### Findings

The sum begins at **one** instead of *zero*, see \`src/sum.ts:2\` and [the docs](https://example.com).

1. Read the test
2. Fix the start
   - then run it again

| case | before | after |
|---|---:|---:|
| empty | 1 | 0 |
| two values | 4 | 3 |

> Only the first line changes.

\`\`\`ts
const total = values.reduce((a, b) => a + b, 0);
\`\`\`
`;

export default function GalleryView(): JSX.Element {
  const [tab, setTab] = createSignal<"one" | "two">("one");
  const [choice, setChoice] = createSignal<"unified" | "split">("unified");
  const [checked, setChecked] = createSignal(true);
  const dialog = () =>
    openDialog((open) => (
      <Dialog
        title="A dialog"
        onClose={open.close}
        foot={
          <>
            <Button onClick={open.close}>{t.cancel}</Button>
            <Button kind="primary" onClick={open.close}>
              {t.save}
            </Button>
          </>
        }
      >
        <p>The focus stays inside and returns to the button.</p>
        <input class="field" aria-label="Field" placeholder="A field" />
      </Dialog>
    ));
  const picker = () =>
    openDialog((open) => (
      <Picker
        title="A picker"
        items={["Apple", "Banana", "Cherry"].map((label) => ({ id: label, label, detail: "fruit" }))}
        onPick={open.close}
        onClose={open.close}
      />
    ));
  return (
    <Page title={t.gallery}>
      <Part title="Buttons">
        <Button>Default</Button>
        <Button kind="primary">Primary</Button>
        <Button kind="danger">Danger</Button>
        <Button kind="quiet">Quiet</Button>
        <Button disabled>Disabled</Button>
        <Button icon="add">With icon</Button>
        <Button icon="copy" label="Only icon" />
        <Button small>Small</Button>
        <Button kind="quiet" icon="pin" label="Pressed" aria-pressed={true} />
      </Part>
      <Part title="Fields">
        <input class="field" aria-label="Text" placeholder="Text" />
        <select class="field" aria-label="Choice">
          <option>One</option>
          <option>Two</option>
        </select>
        <label class="switch">
          <input type="checkbox" role="switch" checked={checked()} onChange={() => setChecked(!checked())} />
          Switch
        </label>
        <label class="choice">
          <input type="radio" name="gallery" checked />
          <span>
            <strong>Choice</strong> <span class="muted">with a description</span>
          </span>
        </label>
      </Part>
      <Part title="Dialog, picker, menu, toast">
        <Button onClick={dialog}>Dialog</Button>
        <Button onClick={picker}>Picker</Button>
        <Menu
          label="Menu"
          entries={() => [
            { label: "Rename", icon: "edit", keys: "Ctrl R", run: () => {} },
            { label: "Pinned", checked: true, run: () => {} },
            "line",
            { label: "Delete", icon: "trash", danger: true, run: () => {} },
          ]}
        />
        <Button onClick={() => toast({ text: "Saved", kind: "good" })}>Toast</Button>
        <Button onClick={() => toast({ text: "The server cannot be reached", kind: "bad" })}>Failure</Button>
      </Part>
      <Part title="Tabs and segments">
        <Tabs
          label="Tabs"
          value={tab()}
          onChange={setTab}
          tabs={[
            { name: "one", label: "One", count: 3 },
            { name: "two", label: "Two" },
          ]}
        />
        <Segments
          label="Segments"
          value={choice()}
          onChange={setChoice}
          options={[
            { name: "unified", label: t.unified },
            { name: "split", label: t.split },
          ]}
        />
      </Part>
      <Part title="Badges and states">
        <For each={["", "accent", "good", "warn", "bad"]}>
          {(kind) => <span class={`badge ${kind}`}>{kind || "plain"}</span>}
        </For>
        <For each={["", "good", "warn", "bad", "busy"]}>{(kind) => <span class={`dot ${kind}`} />}</For>
        <span class="spinner" />
        <kbd>Ctrl</kbd>
        <kbd>K</kbd>
        <div class="notice">A notice</div>
        <div class="notice warn">A warning</div>
        <div class="notice bad">A failure</div>
      </Part>
      <Block title="Markdown">
        <Markdown text={MARKDOWN} />
      </Block>
      <Block title="Code">
        <Code code={'fn main() {\n    println!("hello");\n}'} language="rust" title="src/main.rs" />
      </Block>
      <Block title="Diff">
        <Diff patch={PATCH} split={choice() === "split"} />
      </Block>
      <Block title="Output">
        <Output
          text={"\u001b[32mok\u001b[0m   sum adds\n\u001b[31mFAIL\u001b[0m an empty list is zero"}
          label="Output"
        />
      </Block>
      <Block title="To-do list">
        <TodoList
          todos={[
            { content: "Read the test", status: "completed" },
            { content: "Fix the start", status: "in_progress" },
            { content: "Run the tests", status: "pending" },
          ]}
        />
      </Block>
      <Block title="Virtual list">
        <div class="gallery-list">
          <VirtualList
            keys={Array.from({ length: 10_000 }, (_, at) => String(at))}
            estimate={24}
            label="Ten thousand rows"
          >
            {(key) => <div>Row {key}</div>}
          </VirtualList>
        </div>
      </Block>
    </Page>
  );
}

function Part(props: { title: string; children: JSX.Element }): JSX.Element {
  return (
    <section>
      <h2>{props.title}</h2>
      <div class="row wrap">{props.children}</div>
    </section>
  );
}

function Block(props: { title: string; children: JSX.Element }): JSX.Element {
  return (
    <section>
      <h2>{props.title}</h2>
      {props.children}
    </section>
  );
}
