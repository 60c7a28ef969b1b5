// The groups of acts, in their order.
import { table as hostile } from "./group/hostile.mjs";
import { table as panel } from "./group/panel.mjs";
import { table as phone } from "./group/phone.mjs";
import { table as prompt } from "./group/prompt.mjs";
import { table as requests } from "./group/requests.mjs";
import { table as review } from "./group/review.mjs";
import { table as sessions } from "./group/sessions.mjs";
import { table as search } from "./group/search.mjs";
import { table as settings } from "./group/settings.mjs";
import { table as several } from "./group/several.mjs";
import { table as signIn } from "./group/sign-in.mjs";
import { table as start } from "./group/start.mjs";
import { table as tools } from "./group/tools.mjs";
import { table as trust } from "./group/trust.mjs";

export const groups = [
  ["start", start],
  ["tools", tools],
  ["requests", requests],
  ["prompt", prompt],
  ["sessions", sessions],
  ["panel", panel],
  ["search", search],
  ["review", review],
  ["settings", settings],
  ["hostile", hostile],
  ["several", several],
  ["sign-in", signIn],
  ["phone", phone],
  ["trust", trust],
];
