// What the user prepares for a session: the text, attachments, mentions and review comments. The text outlives the
// page.
import { createSignal, type Accessor, type Setter } from "solid-js";
import type { PromptPart } from "../../state/actions";
import { draft as storedDraft, setDraft } from "../../state/prefs";
import { code } from "../../ui/text";

export interface Attachment {
  name: string;
  mime: string;
  url: string;
  bytes: number;
}

/** What a name in the text stands for. */
export type Mention =
  | { kind: "file"; path: string }
  | { kind: "agent"; name: string }
  | { kind: "resource"; name: string; uri: string; client: string; mime: string };

/** A comment on a line of a diff, for the next prompt. */
export interface Comment {
  file: string;
  line: number;
  side: "old" | "new";
  snippet: string;
  text: string;
}

export interface Draft {
  text: Accessor<string>;
  setText: (text: string) => void;
  attachments: Accessor<Attachment[]>;
  setAttachments: Setter<Attachment[]>;
  comments: Accessor<Comment[]>;
  setComments: Setter<Comment[]>;
  isShell: Accessor<boolean>;
  setShell: Setter<boolean>;
  mentions: Map<string, Mention>;
  clear: () => void;
}

const drafts = new Map<string, Draft>();

/** Returns the draft of a session, or of a new session in the current directory (`new`). */
export function draftOf(id: string): Draft {
  const known = drafts.get(id);
  if (known) return known;
  const [text, setSignal] = createSignal(storedDraft(id));
  const [attachments, setAttachments] = createSignal<Attachment[]>([]);
  const [comments, setComments] = createSignal<Comment[]>([]);
  const [isShell, setShell] = createSignal(false);
  const mentions = new Map<string, Mention>();
  const setText = (next: string) => {
    setSignal(next);
    setDraft(id, next);
  };
  const clear = () => {
    setText("");
    setAttachments([]);
    setComments([]);
    setShell(false);
    mentions.clear();
  };
  const made = {
    text,
    setText,
    attachments,
    setAttachments,
    comments,
    setComments,
    isShell,
    setShell,
    mentions,
    clear,
  };
  drafts.set(id, made);
  return made;
}

/** Moves the focus to the prompt. */
export function focusPrompt(): void {
  requestAnimationFrame(() => document.querySelector<HTMLTextAreaElement>("#prompt")?.focus());
}

/** Returns the parts of a prompt. Positions of mentions are in bytes of UTF-8, as the server counts them. */
export function partsOf(draft: Draft, directory: string): PromptPart[] {
  const comments = draft.comments().map(commentText);
  const text = [draft.text().trim(), ...comments].filter(Boolean).join("\n\n");
  const parts: PromptPart[] = [{ type: "text", text }];
  const size = (piece: string) => new TextEncoder().encode(piece).length;
  for (const [value, mention] of draft.mentions) {
    const at = text.indexOf(value);
    if (at < 0) continue;
    const start = size(text.slice(0, at));
    const place = { value, start, end: start + size(value) };
    if (mention.kind === "agent") {
      parts.push({ type: "agent", name: mention.name, source: place });
    } else if (mention.kind === "file") {
      const absolute = mention.path.startsWith("/") ? mention.path : `${directory.replace(/\/$/, "")}/${mention.path}`;
      const isDirectory = mention.path.endsWith("/");
      parts.push({
        type: "file",
        mime: isDirectory ? "application/x-directory" : "text/plain",
        filename: mention.path,
        url: `file://${absolute.split("/").map(encodeURIComponent).join("/")}`,
        source: { type: "file", path: mention.path, text: place },
      });
    } else {
      parts.push({
        type: "file",
        mime: mention.mime,
        filename: mention.name,
        url: mention.uri,
        source: { type: "resource", clientName: mention.client, uri: mention.uri, text: place },
      });
    }
  }
  for (const { name, mime, url } of draft.attachments()) parts.push({ type: "file", mime, filename: name, url });
  return parts;
}

function commentText(comment: Comment): string {
  const side = comment.side === "old" ? " (before the change)" : "";
  const snippet = `\`\`\`\n${code(comment.snippet)}\n\`\`\``;
  return `Comment on ${comment.file}:${comment.line}${side}:\n${snippet}\n${comment.text}`;
}
