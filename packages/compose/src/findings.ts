/** What there is to say about a compose file. */

export interface Finding {
  /** `error`: the project cannot be made as it is. `warning`: something has no effect, or another. `note`: good to know. */
  severity: "error" | "warning" | "note";
  /** Where, such as `services.db.volumes`. Empty for the whole file. */
  path: string;
  /** Sentences that say what, why, and what to do. */
  message: string;
}

/** Collects findings, each once. */
export class Findings {
  readonly #list: Finding[] = [];
  readonly #known = new Set<string>();

  get list(): readonly Finding[] {
    return this.#list;
  }

  get hasErrors(): boolean {
    return this.#list.some(({ severity }) => severity === "error");
  }

  error(path: string, message: string): undefined {
    return this.#add({ severity: "error", path, message });
  }

  warn(path: string, message: string): undefined {
    return this.#add({ severity: "warning", path, message });
  }

  note(path: string, message: string): undefined {
    return this.#add({ severity: "note", path, message });
  }

  #add(finding: Finding): undefined {
    const text = `${finding.path}\0${finding.message}`;
    if (!this.#known.has(text)) this.#list.push(finding);
    this.#known.add(text);
    return undefined;
  }
}
