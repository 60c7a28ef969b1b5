// Who answers a prompt: the agent, the model and its variant, as the composer displays them.
import {
  currentAgent,
  currentModel,
  currentVariant,
  findModel,
  isGuessed,
  needsChoice,
  variantsOf,
} from "../../../state/choice";
import { t } from "../../../text";
import { prose } from "../../../ui/text";
import type { ComposerContext } from "./context";

export type Answerer = ReturnType<typeof createAnswerer>;

export function createAnswerer({ draft, place, session }: ComposerContext) {
  const model = () => currentModel(place(), session());
  return {
    agent: () => currentAgent(place(), session()),
    modelTitle: () => {
      const ref = model();
      return ref ? prose(findModel(place(), ref)?.model.name ?? ref.modelID) : t.noModel;
    },
    variant: () => {
      const ref = model();
      return ref ? currentVariant(place(), ref) : undefined;
    },
    hasVariants: () => variantsOf(place(), model()).length > 0,
    /** Whether the user must choose a model before the first prompt. */
    isUnchosen: () => needsChoice(place(), session()),
    /** Whether the model was guessed, because nothing names one. */
    isGuessed: () => isGuessed(place(), session()),
    /** Whether a picture is attached that the model cannot see. */
    isBlind: () =>
      draft.attachments().some((file) => file.mime.startsWith("image/")) &&
      findModel(place(), model())?.model.capabilities.input.image === false,
  };
}
