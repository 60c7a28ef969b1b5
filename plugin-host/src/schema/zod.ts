/** The bundled zod 4. Load this module only when a plugin needs it. */
import * as z from "zod";

export const zod: typeof z = z;
export const toJSONSchema = z.toJSONSchema;
