// The element that replaces style elements of the terminal emulator. The content policy forbids those, but not the
// style sheets that scripts build.

class TerminalStyle extends HTMLElement {
  #sheet = new CSSStyleSheet();

  override get textContent(): string {
    return "";
  }
  override set textContent(text: string) {
    this.#sheet.replaceSync(text);
  }
  connectedCallback(): void {
    if (!document.adoptedStyleSheets.includes(this.#sheet))
      document.adoptedStyleSheets = [...document.adoptedStyleSheets, this.#sheet];
  }
  disconnectedCallback(): void {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== this.#sheet);
  }
}

/** Registers the element. */
export function defineStyles(): void {
  if (!customElements.get("terminal-style")) customElements.define("terminal-style", TerminalStyle);
}
