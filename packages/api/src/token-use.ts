/** When tokens were last used: kept in memory, and written now and then. */
import type { TokenStore } from "@hibernaut/store";

/** At most one write in this time, in milliseconds, however many requests there are. A minute tells a used token from a forgotten one. */
const WRITE_MS = 60_000;

interface TokenUseOptions {
  tokens: Pick<TokenStore, "used">;
  /** Receives a fault of the store. The times are kept for the next attempt. */
  onFault(error: unknown): void;
}

/** Collects when tokens are used. */
export class TokenUse {
  readonly #options: TokenUseOptions;
  readonly #unwritten = new Map<string, string>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: TokenUseOptions) {
    this.#options = options;
  }

  /** Notes that a token was used just now. */
  note(id: string): void {
    this.#unwritten.set(id, new Date().toISOString());
    this.#timer ??= setTimeout(() => this.write(), WRITE_MS).unref();
  }

  /** When the token was last used, if that is not written yet. */
  of(id: string): string | undefined {
    return this.#unwritten.get(id);
  }

  /** Writes what is not written yet. Never throws. */
  write(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#unwritten.size === 0) return;
    try {
      this.#options.tokens.used(this.#unwritten);
      this.#unwritten.clear();
    } catch (error) {
      this.#options.onFault(error);
    }
  }
}
