// The texts of the app in the language of the user.
import { en } from "./en";

export type Texts = typeof en;
export const t: Texts = en;
