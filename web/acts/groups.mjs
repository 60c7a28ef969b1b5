// The groups of acts, in their order.
import { table as requests } from "./group/requests.mjs";
import { table as start } from "./group/start.mjs";
import { table as tools } from "./group/tools.mjs";

export const groups = [["start", start], ["tools", tools], ["requests", requests]];
