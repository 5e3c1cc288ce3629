/** The answers to the challenges that are open now. Proxies give them. */
import type { Challenges } from "./contract.ts";

export class ChallengeBoard implements Challenges {
  /** The last one of each counts. */
  readonly #answers = new Map<string, string[]>();
  readonly #certificates = new Map<string, string[]>();
  readonly #listeners = new Set<() => Promise<void>>();

  all(): Record<string, string> {
    return lastOfEach(this.#answers);
  }

  certificates(): Record<string, string> {
    return lastOfEach(this.#certificates);
  }

  subscribe(listener: () => Promise<void>): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Publishes an answer over HTTP. Resolves once all proxies give it, with a function that takes it back. */
  publish(hostname: string, token: string, answer: string): Promise<() => Promise<void>> {
    return this.#put(this.#answers, `${hostname}/${token}`, answer);
  }

  /**
   * Publishes a certificate with its key, in PEM. Resolves once all proxies show it, with a function that takes it back and
   * lets them show what they showed before. One that is put `under` is only shown while there is no other for the name.
   */
  show(hostname: string, certificate: string, place: "over" | "under" = "over"): Promise<() => Promise<void>> {
    return this.#put(this.#certificates, hostname, certificate, place);
  }

  /** The certificates of a name: the one that is shown, last, and those that it hides. */
  certificatesOf(hostname: string): readonly string[] {
    return this.#certificates.get(hostname) ?? [];
  }

  async #put(
    answers: Map<string, string[]>,
    key: string,
    answer: string,
    place: "over" | "under" = "over",
  ): Promise<() => Promise<void>> {
    const others = answers.get(key) ?? [];
    answers.set(key, place === "over" ? [...others, answer] : [answer, ...others]);
    await this.#tell();
    return async () => {
      const left = [...(answers.get(key) ?? [])];
      const index = left.lastIndexOf(answer);
      if (index !== -1) left.splice(index, 1);
      if (left.length === 0) answers.delete(key);
      else answers.set(key, left);
      await this.#tell();
    };
  }

  async #tell(): Promise<void> {
    await Promise.all([...this.#listeners].map((listener) => listener()));
  }
}

function lastOfEach(answers: ReadonlyMap<string, readonly string[]>): Record<string, string> {
  return Object.fromEntries([...answers].map(([key, all]) => [key, all.at(-1) ?? ""]));
}
