// Themes: the palettes of the terminal client, and theme files of OpenCode. A palette is set as properties of the root
// element, which the content policy allows.
import { createEffect } from "solid-js";
import { prefs } from "./prefs";
import { PALETTES, type Palette } from "./palettes.gen";

const NAMES = [
  "bg",
  "panel",
  "element",
  "line",
  "muted",
  "text",
  "red",
  "orange",
  "yellow",
  "green",
  "cyan",
  "blue",
  "purple",
] as const;
type Colour = (typeof NAMES)[number];

export function themeNames(): string[] {
  return ["codewright", ...Object.keys(PALETTES).filter((name) => name !== "codewright"), ...Object.keys(prefs.themes)];
}

const HEX = /^#(?:[0-9a-f]{3}|[0-9a-f]{6})$/i;

function channels(hex: string): [number, number, number] {
  const full = hex.length === 4 ? `#${[...hex.slice(1)].map((digit) => digit + digit).join("")}` : hex;
  return [1, 3, 5].map((at) => parseInt(full.slice(at, at + 2), 16)) as [number, number, number];
}

function luminance(hex: string): number {
  const [red, green, blue] = channels(hex).map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

export function contrast(a: string, b: string): number {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

function mix(a: string, b: string, part: number): string {
  const [from, to] = [channels(a), channels(b)];
  return `#${from
    .map((value, at) =>
      Math.round(value + ((to[at] ?? 0) - value) * part)
        .toString(16)
        .padStart(2, "0"),
    )
    .join("")}`;
}

/** Returns a colour that is readable on a background: the given one, moved towards black or white if needed. */
export function readable(colour: string, background: string, wanted = 4.6): string {
  const goal = luminance(background) > 0.35 ? "#000000" : "#ffffff";
  for (let part = 0; part <= 1; part += 0.05) {
    const candidate = mix(colour, goal, part);
    if (contrast(candidate, background) >= wanted) return candidate;
  }
  return goal;
}

/** Returns a palette whose texts are readable on its panels. */
export function adjusted(palette: Palette): Palette {
  const element = palette[2];
  return palette.map((colour, at) => (at < 4 ? colour : readable(colour, element))) as Palette;
}

const FILE_KEYS: Record<Colour, string[]> = {
  bg: ["background"],
  panel: ["backgroundPanel"],
  element: ["backgroundElement"],
  line: ["border"],
  muted: ["textMuted"],
  text: ["text"],
  red: ["error"],
  orange: ["warning", "accent"],
  yellow: ["syntaxType", "warning"],
  green: ["success"],
  cyan: ["info", "syntaxOperator"],
  blue: ["primary"],
  purple: ["secondary", "accent"],
};

/** Returns the palettes of a theme file, or null if the value is not one. */
export function parseTheme(value: unknown): { dark: Palette; light: Palette } | null {
  if (value === null || typeof value !== "object" || !("theme" in value)) return null;
  const { theme, defs = {} } = value as { theme: Record<string, unknown>; defs?: Record<string, unknown> };
  if (theme === null || typeof theme !== "object") return null;
  const resolve = (one: unknown, scheme: "dark" | "light", depth = 0): string | null => {
    if (depth > 8) return null;
    if (typeof one === "string") {
      if (HEX.test(one)) return one;
      return resolve(defs[one] ?? theme[one], scheme, depth + 1);
    }
    if (one !== null && typeof one === "object")
      return resolve((one as Record<string, unknown>)[scheme], scheme, depth + 1);
    return null;
  };
  const palette = (scheme: "dark" | "light"): Palette | null => {
    const base = PALETTES["codewright"]?.[scheme];
    if (!base) return null;
    return NAMES.map(
      (name, at) => FILE_KEYS[name].map((key) => resolve(theme[key], scheme)).find((one) => one !== null) ?? base[at],
    ) as Palette;
  };
  const [dark, light] = [palette("dark"), palette("light")];
  return dark && light && resolve(theme["text"], "dark") ? { dark, light } : null;
}

/** Keeps the root element in the chosen theme. */
export function followTheme(): void {
  const root = document.documentElement;
  createEffect(() => {
    if (prefs.scheme === "system") delete root.dataset["scheme"];
    else root.dataset["scheme"] = prefs.scheme;
    root.style.fontSize = prefs.textSize === 100 ? "" : `${prefs.textSize}%`;
  });
  createEffect(() => {
    const palettes =
      prefs.theme === "codewright" ? null : (PALETTES[prefs.theme] ?? parseTheme(prefs.themes[prefs.theme]));
    NAMES.forEach((name, at) => {
      if (!palettes) root.style.removeProperty(`--${name}`);
      else
        root.style.setProperty(
          `--${name}`,
          `light-dark(${adjusted(palettes.light)[at]}, ${adjusted(palettes.dark)[at]})`,
        );
    });
  });
}
