// Tooltips: one element in the top layer, shown after a short rest on a control or when the keyboard focuses it.
import { onCleanup } from "solid-js";

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

/** Gives a control a tooltip. */
export function tooltip(target: HTMLElement, tip: () => Tip): void {
  const later = () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => show(target, tip()), DELAY_MS);
  };
  const focused = () => {
    if (target.matches(":focus-visible")) later();
  };
  target.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && later());
  target.addEventListener("pointerleave", hide);
  target.addEventListener("pointerdown", hide);
  target.addEventListener("focus", focused);
  target.addEventListener("blur", hide);
  onCleanup(hide);
}
