// Tooltips: one element in the top layer, shown after a short rest on a control or when the keyboard focuses it.
interface Tip {
  text: string;
  keys?: string | undefined;
}

const DELAY_MS = 450;
let shown: HTMLElement | null = null;
let timer = 0;

function hide(): void {
  clearTimeout(timer);
  shown?.remove();
  shown = null;
}

function show(target: HTMLElement, tip: Tip): void {
  hide();
  if (!tip.text || !target.isConnected || typeof target.showPopover !== "function") return;
  const element = document.createElement("div");
  element.className = "tooltip";
  element.role = "tooltip";
  element.popover = "manual";
  element.textContent = tip.text;
  if (tip.keys) {
    const keys = document.createElement("span");
    keys.className = "key";
    keys.textContent = tip.keys;
    element.append(keys);
  }
  document.body.append(element);
  element.showPopover();
  const at = target.getBoundingClientRect();
  const size = element.getBoundingClientRect();
  const above = at.bottom + size.height + 8 > innerHeight;
  const left = Math.min(Math.max(4, at.left + at.width / 2 - size.width / 2), innerWidth - size.width - 4);
  element.style.left = `${left}px`;
  element.style.top = `${above ? at.top - size.height - 6 : at.bottom + 6}px`;
  shown = element;
}

/** The controls with tooltips. The page has one listener for all of them. */
const tips = new WeakMap<Element, () => Tip>();

/** Returns the control with a tooltip that contains the target of an event. */
function controlOf(event: Event): HTMLElement | null {
  for (let at = event.target instanceof Element ? event.target : null; at; at = at.parentElement) {
    if (at instanceof HTMLElement && tips.has(at)) return at;
  }
  return null;
}

function later(target: HTMLElement): void {
  clearTimeout(timer);
  timer = window.setTimeout(() => {
    const tip = tips.get(target);
    if (tip) show(target, tip());
  }, DELAY_MS);
}

/** The control under the pointer. */
let under: HTMLElement | null = null;
addEventListener("pointerover", (event) => {
  const control = event.pointerType === "mouse" ? controlOf(event) : null;
  if (control === under) return;
  under = control;
  hide();
  if (control) later(control);
});
addEventListener("focusin", (event) => {
  const control = controlOf(event);
  if (control?.matches(":focus-visible")) later(control);
});
for (const name of ["pointerdown", "focusout", "keydown", "hashchange"]) addEventListener(name, hide);
document.documentElement.addEventListener("pointerleave", hide);

/** Gives a control a tooltip. */
export function tooltip(target: HTMLElement, tip: () => Tip): void {
  tips.set(target, tip);
}
