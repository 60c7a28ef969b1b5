// What the parts of the composer share.
import type { Accessor } from "solid-js";
import type { Session } from "../../../api";
import type { Place } from "../../../state/place";
import type { Draft } from "../draft";

export interface ComposerContext {
  draft: Draft;
  place: Accessor<Place>;
  /** The session, unless the prompt begins a new one. */
  session: Accessor<Session | undefined>;
  /** The field of the text, after it was mounted. */
  area: () => HTMLTextAreaElement;
}
