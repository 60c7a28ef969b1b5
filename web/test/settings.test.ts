// @vitest-environment happy-dom
// The pages of the settings: what they read from the configuration and write to it. Which model a prompt is sent to.
import { beforeEach, describe, expect, it } from "vitest";
import type { Agent, Config, Model, Provider } from "../src/api";
import { currentModel, isChosen, isGuessed, isPublic, needsChoice } from "../src/state/choice";
import type { Place, Providers } from "../src/state/place";
import { setPrefs } from "../src/state/prefs";
import { changeOf, pairs, removalOf, rulesOf, words } from "../src/views/settings/parse";

const model = (toolcall = true) =>
  ({ capabilities: { toolcall, output: { text: true } }, limit: {}, cost: {} }) as unknown as Model;
const provider = (id: string, models: string[], apiKey?: string) =>
  ({
    id,
    name: id,
    options: apiKey ? { apiKey } : {},
    models: Object.fromEntries(models.map((name) => [name, model()])),
  }) as unknown as Provider;
const place = (providers: Provider[], config: Config = {}, model: Providers["model"] = null) => {
  const all: Providers = { providers, default: {}, model };
  return {
    directory: "/",
    agents: () => [] as Agent[],
    providers: () => all,
    config: () => config,
  } as unknown as Place;
};

describe("the model of a prompt", () => {
  beforeEach(() => setPrefs({ model: null, recent: [], publicModels: [] }));
  const free = provider("zen", ["pickle"], "public");
  const own = provider("acme", ["a", "b"]);

  it("is never one of a service for everybody without a choice", () => {
    expect(isPublic(free)).toBe(true);
    expect(currentModel(place([free]))).toBeUndefined();
    expect(needsChoice(place([free]))).toBe(true);
    setPrefs("recent", ["zen/pickle"]);
    setPrefs("model", { providerID: "zen", modelID: "pickle" });
    expect(currentModel(place([free]))).toBeUndefined();
    expect(isChosen(place([free]))).toBe(false);
    setPrefs("publicModels", ["zen/pickle"]);
    expect(isChosen(place([free]))).toBe(true);
    expect(currentModel(place([free]))).toEqual({ providerID: "zen", modelID: "pickle" });
  });

  it("may be one of them if the configuration names it", () => {
    expect(currentModel(place([free], { model: "zen/pickle" }))).toEqual({ providerID: "zen", modelID: "pickle" });
  });

  it("is guessed by the server, and says so", () => {
    const here = place([free, own], {}, { providerID: "acme", modelID: "b", guessed: true });
    expect(currentModel(here)).toEqual({ providerID: "acme", modelID: "b" });
    expect(isGuessed(here)).toBe(true);
    expect(isChosen(here)).toBe(false);
    setPrefs("model", { providerID: "acme", modelID: "a" });
    expect(currentModel(here)).toEqual({ providerID: "acme", modelID: "a" });
    expect(isGuessed(here)).toBe(false);
    expect(isChosen(here)).toBe(true);
  });
});

describe("permission rules", () => {
  it("are read from every form", () => {
    expect(rulesOf(undefined)).toEqual([]);
    expect(rulesOf("ask")).toEqual([{ permission: "*", pattern: "*", action: "ask", isPlain: true }]);
    expect(
      rulesOf({ edit: "deny", bash: { "*": "ask", "npm test": "allow" } }).map(
        ({ permission, pattern, action }) => `${permission} ${pattern} ${action}`,
      ),
    ).toEqual(["edit * deny", "bash * ask", "bash npm test allow"]);
  });

  it.each([
    [
      "a first rule without a pattern",
      {},
      { permission: "edit", pattern: "*", action: "deny" },
      { permission: { edit: "deny" } },
    ],
    [
      "a pattern keeps the rule for the rest",
      { bash: "ask" },
      { permission: "bash", pattern: "ls *", action: "allow" },
      { permission: { bash: { "*": "ask", "ls *": "allow" } } },
    ],
    [
      "another pattern is added",
      { bash: { "ls *": "allow" } },
      { permission: "bash", pattern: "rm *", action: "deny" },
      { permission: { bash: { "rm *": "deny" } } },
    ],
    [
      "a permission without patterns",
      {},
      { permission: "webfetch", pattern: "x", action: "deny" },
      { permission: { webfetch: "deny" } },
    ],
    ["a rule for everything", "ask", { permission: "*", pattern: "*", action: "allow" }, { permission: "allow" }],
  ] as const)("%s", (_, before, rule, expected) =>
    expect(changeOf(rule, rulesOf(before as Config["permission"]))).toEqual(expected),
  );
});

describe("servers of tools", () => {
  it.each([
    ["npx -y server", ["npx", "-y", "server"]],
    [`node "my server.js" 'a b' c\\d`, ["node", "my server.js", "a b", "c\\d"]],
    [`run ""`, ["run", ""]],
    ["  ", []],
  ])("%s", (line, expected) => expect(words(line)).toEqual(expected));

  it("reads variables and headers", () => {
    expect(pairs("A=1\nB_2 = x=y\n\nX-Key: v")).toEqual({ A: "1", B_2: "x=y", "X-Key": "v" });
    expect(pairs("no separator")).toBeNull();
  });
});

describe("the removal of a rule", () => {
  it("removes a pattern, a permission, or the rule for all of them", () => {
    const rules = rulesOf({ bash: { "*": "ask", "make *": "allow" }, edit: "ask" });
    expect(rules.map(removalOf)).toEqual([
      { permission: { bash: { "*": null } } },
      { permission: { bash: { "make *": null } } },
      { permission: { edit: null } },
    ]);
    expect(rulesOf("ask").map(removalOf)).toEqual([{ permission: null }]);
  });
});
