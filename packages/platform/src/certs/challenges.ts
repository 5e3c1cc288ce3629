/** The answers to HTTP-01 challenges that are open now. Proxies give them. */
import type { Challenges } from "./contract.ts";

export class ChallengeBoard implements Challenges {
  readonly #answers = new Map<string, string>();
  readonly #listeners = new Set<() => Promise<void>>();

  all(): Record<string, string> {
    return Object.fromEntries(this.#answers);
  }

  subscribe(listener: () => Promise<void>): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Publishes an answer. Resolves once all proxies give it, with a function that takes it back. */
  async publish(hostname: string, token: string, answer: string): Promise<() => Promise<void>> {
    const key = `${hostname}/${token}`;
    this.#answers.set(key, answer);
    await this.#tell();
    return async () => {
      this.#answers.delete(key);
      await this.#tell();
    };
  }

  async #tell(): Promise<void> {
    await Promise.all([...this.#listeners].map((listener) => listener()));
  }
}
