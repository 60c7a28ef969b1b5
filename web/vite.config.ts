// The build of the app. All names are relative, so that the app works below any path.
import { defineConfig, type Plugin } from "vite";
import solid from "vite-plugin-solid";
import { FIRST } from "./src/api/first.ts";

/**
 * Makes Solid create its templates through a Trusted Types policy.
 *
 * The server's content policy forbids text as markup. Solid's templates are constants of the build, and this module
 * is the only one that can use the policy, so no text of a model can reach it.
 */
function trustedTemplates(): Plugin {
  const before = "    t.innerHTML = html;";
  return {
    name: "trusted-templates",
    enforce: "pre",
    transform(code, id) {
      if (!/solid-js\/web\/dist\/\w+\.js/.test(id)) return null;
      if (code.split(before).length !== 2) throw new Error("solid-js/web creates templates in another way");
      const policy =
        "const templates = globalThis.trustedTypes?.createPolicy('codewright', { createHTML: (text) => text })" +
        " ?? { createHTML: (text) => text };\n";
      return policy + code.replace(before, "    t.innerHTML = templates.createHTML(html);");
    },
  };
}

/**
 * Makes the terminal emulator write its rules in ways that the content policy allows: into an element whose text
 * becomes a style sheet (`views/terminal/styles.ts`), and into style properties instead of attributes.
 */
function terminalStyles(): Plugin {
  const [element, attribute] = ['createElement("style")', '.setAttribute("style",'];
  return {
    name: "terminal-styles",
    enforce: "pre",
    transform(code, id) {
      if (!/@xterm\/xterm\/lib\/xterm\.mjs/.test(id)) return null;
      if (!code.includes(element) || !code.includes(attribute))
        throw new Error("the terminal emulator writes styles in another way");
      return code.replaceAll(element, 'createElement("terminal-style")').replaceAll(attribute, ".style.cssText=(");
    },
  };
}

/** Makes the browser fetch the font of the first view with the scripts, so that the text is laid out once. */
function firstFont(): Plugin {
  return {
    name: "first-font",
    transformIndexHtml: {
      order: "post",
      handler: (_, { bundle }) => {
        const fonts = Object.keys(bundle ?? {}).filter((name) => /inter-.*\.woff2$/.test(name));
        return fonts.map((name) => ({
          tag: "link",
          injectTo: "head" as const,
          attrs: { rel: "preload", as: "font", type: "font/woff2", crossorigin: "anonymous", href: `./${name}` },
        }));
      },
    },
  };
}

/** Makes the browser send the calls of the first view before it has the scripts. They have the mode of `fetch`. */
function firstCalls(): Plugin {
  return {
    name: "first-calls",
    transformIndexHtml: () =>
      Object.entries(FIRST).map(([route, query]) => {
        const values = new URLSearchParams(
          Object.entries(query).map(([name, value]) => [name, String(value)]),
        ).toString();
        const href = `.${route.slice(route.indexOf("/"))}${values ? `?${values}` : ""}`;
        return {
          tag: "link",
          injectTo: "head" as const,
          attrs: { rel: "preload", as: "fetch", crossorigin: "anonymous", href },
        };
      }),
  };
}

export default defineConfig({
  base: "./",
  plugins: [firstCalls(), firstFont(), trustedTemplates(), terminalStyles(), solid()],
  publicDir: false,
  build: {
    outDir: ".build",
    target: "es2022",
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    assetsInlineLimit: 0,
    rollupOptions: {
      output: {
        entryFileNames: "assets/[name]-[hash].js",
        chunkFileNames: "assets/[name]-[hash].js",
        assetFileNames: "assets/[name]-[hash][extname]",
        // One file for what the first view needs, also if a later part uses some of it: browsers load few files at a
        // time.
        codeSplitting: { groups: [{ name: "app", test: /src\/main\.tsx$/ }] },
      },
    },
  },
  test: { environment: "node", include: ["test/**/*.test.ts"], setupFiles: ["test/setup.ts"] },
} as Parameters<typeof defineConfig>[0]);
