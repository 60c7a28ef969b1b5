// The attachments and the comments of a draft, each with a button that removes it.
import { For, Show, type JSX } from "solid-js";
import { t } from "../../../text";
import { Button } from "../../../ui/button";
import { Icon } from "../../../ui/icon";
import { plain, prose } from "../../../ui/text";
import type { Draft } from "../draft";

function Remove(props: { name: string; onClick: () => void }): JSX.Element {
  return (
    <Button small kind="quiet" icon="close" label={`${t.remove}: ${props.name}`} onClick={() => props.onClick()} />
  );
}

export function Chips(props: { draft: Draft }): JSX.Element {
  return (
    <Show when={props.draft.attachments().length + props.draft.comments().length > 0}>
      <div class="chips composer-chips">
        <For each={props.draft.attachments()}>
          {(file) => (
            <span class="chip">
              <Show when={file.mime.startsWith("image/")} fallback={<Icon name="file" />}>
                <img src={file.url} alt="" />
              </Show>
              <span class="clip">{plain(file.name)}</span>
              <Remove
                name={file.name}
                onClick={() => props.draft.setAttachments((all) => all.filter((one) => one !== file))}
              />
            </span>
          )}
        </For>
        <For each={props.draft.comments()}>
          {(comment) => (
            <span class="chip" title={comment.text}>
              <Icon name="edit" />
              <span class="clip mono">
                {plain(comment.file.split("/").at(-1) ?? "")}:{comment.line}
              </span>
              <span class="clip">{prose(comment.text)}</span>
              <Remove
                name={comment.text}
                onClick={() => props.draft.setComments((all) => all.filter((one) => one !== comment))}
              />
            </span>
          )}
        </For>
      </div>
    </Show>
  );
}
