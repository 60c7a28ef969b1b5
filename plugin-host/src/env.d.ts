/** Written by `build.mjs` from the installed `zod`. */
declare module "zod-exports" {
  export const ZOD_EXPORTS: readonly string[];
}
