/** The one tooltip of a chart. Rows show and hide it without rendering the chart again. */

/** What the tooltip says, and where: pixels from the chart's left and top edge. */
interface TipContent {
  left: number;
  top: number;
  lines: readonly string[];
}

/** The tooltip's state. */
export class Tip {
  content: TipContent | undefined;
  #listener: (() => void) | undefined;

  show(content: TipContent | undefined): void {
    this.content = content;
    this.#listener?.();
  }

  /** Calls back on changes. There is one layer that shows them. */
  listen(listener: () => void): () => void {
    this.#listener = listener;
    return () => (this.#listener = undefined);
  }
}
