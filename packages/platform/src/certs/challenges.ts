/** The answers to the challenges that are open now. Proxies give them. */
import type { Challenges } from "./contract.ts";

export class ChallengeBoard implements Challenges {
  readonly #answers = new Map<string, string>();
  readonly #certificates = new Map<string, string>();
  readonly #listeners = new Set<() => Promise<void>>();

  all(): Record<string, string> {
    return Object.fromEntries(this.#answers);
  }

  certificates(): Record<string, string> {
    return Object.fromEntries(this.#certificates);
  }

  subscribe(listener: () => Promise<void>): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Publishes an answer over HTTP. Resolves once all proxies give it, with a function that takes it back. */
  publish(hostname: string, token: string, answer: string): Promise<() => Promise<void>> {
    return this.#put(this.#answers, `${hostname}/${token}`, answer);
  }

  /** Publishes a certificate with its key, in PEM. Resolves once all proxies show it, with a function that takes it back. */
  show(hostname: string, certificate: string): Promise<() => Promise<void>> {
    return this.#put(this.#certificates, hostname, certificate);
  }

  async #put(answers: Map<string, string>, key: string, answer: string): Promise<() => Promise<void>> {
    answers.set(key, answer);
    await this.#tell();
    return async () => {
      // Another one may have taken its place.
      if (answers.get(key) === answer) answers.delete(key);
      await this.#tell();
    };
  }

  async #tell(): Promise<void> {
    await Promise.all([...this.#listeners].map((listener) => listener()));
  }
}
