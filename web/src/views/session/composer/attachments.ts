// Files that the user attaches to a prompt: chosen, pasted or dropped.
import { t } from "../../../text";
import { plain } from "../../../ui/text";
import { fail, toast } from "../../../ui/toast";
import type { Attachment, Draft } from "../draft";

const MAX_ATTACHMENT = 20 * 1024 * 1024;

/** Adds files to a draft when they are read. A file that is too large is reported and left out. */
export function attach(draft: Draft, files: Iterable<File>): void {
  for (const file of files) {
    if (file.size > MAX_ATTACHMENT) {
      toast({ text: t.attachmentTooLarge(plain(file.name)), kind: "bad" });
      continue;
    }
    void read(file).then((added) => draft.setAttachments((all) => [...all, added]), fail);
  }
}

/** Reads a file as a data URL. */
function read(file: File): Promise<Attachment> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onerror = () => reject(reader.error ?? new Error(file.name));
    reader.onload = () => {
      const mime = file.type || "text/plain";
      const url = String(reader.result).replace(/^data:[^;,]*/, `data:${mime}`);
      resolve({ name: file.name || "pasted", mime, url, bytes: file.size });
    };
    reader.readAsDataURL(file);
  });
}
