// A file of a message: a picture, or its name.
import { Show, type JSX } from "solid-js";
import type { FilePart } from "../../api";
import { Icon } from "../../ui/icon";
import { plain } from "../../ui/text";

export function FileChip(props: { file: FilePart }): JSX.Element {
  const isPicture = () => /^data:image\/(png|jpeg|gif|webp|avif);/.test(props.file.url);
  const name = () => plain(props.file.filename ?? props.file.mime);
  return (
    <Show
      when={isPicture()}
      fallback={
        <span class="chip">
          <Icon name={props.file.mime === "application/x-directory" ? "folder" : "file"} />
          <span class="clip">{name()}</span>
        </span>
      }
    >
      <a class="chip-image" href={props.file.url} download={name()} title={name()}>
        <img src={props.file.url} alt={name()} loading="lazy" />
      </a>
    </Show>
  );
}
