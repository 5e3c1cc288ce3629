/**
 * Styles that a library makes while it runs. The page's policy refuses them as `style` elements, and allows style sheets
 * that a script of the page itself constructs. The build makes xterm.js use this element in place of `style`.
 */

/** The element's name. `vite.config.ts` writes it into xterm.js. */
const ADOPTED_STYLE = "adopted-style";

/** Its text is a style sheet of the document, as long as it is in the document. */
class AdoptedStyle extends HTMLElement {
  readonly #sheet = new CSSStyleSheet();

  override get textContent(): string {
    return "";
  }

  override set textContent(css: string) {
    this.#sheet.replaceSync(css);
  }

  connectedCallback(): void {
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, this.#sheet];
  }

  disconnectedCallback(): void {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((sheet) => sheet !== this.#sheet);
  }
}

/** Makes the element known. */
export function defineAdoptedStyle(): void {
  if (customElements.get(ADOPTED_STYLE) === undefined) customElements.define(ADOPTED_STYLE, AdoptedStyle);
}
