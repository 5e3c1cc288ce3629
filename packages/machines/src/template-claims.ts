/** What the hosts of a cluster agree on about templates. A host alone has none of this. */
import type { TemplateRecord } from "@hibernaut/domain/template";
import type { TakenFrom } from "@hibernaut/snapshots";

export type { TakenFrom };

/** A template that this host has made, with all its files in place. */
export interface MadeTemplate {
  template: TemplateRecord;
  /** The directory of its files. */
  folder: string;
  /** Where it may be kept what these are. */
  contents: string;
  /** What its memory was taken from. */
  taken: TakenFrom;
}

export interface TemplateClaims {
  /** Rejects with `already_exists` when a template of any host has the name, and with `unavailable` when the directory does not answer. */
  requireFree(app: string, name: string): Promise<void>;
  /**
   * Makes a template known to all hosts, as one that this host has, and then calls `store`. Rejects with `already_exists` when
   * another one has the name, with `unavailable` when the directory does not answer, and with what `store` throws; then no host
   * has it.
   */
  claim(made: MadeTemplate, store: () => void, signal: AbortSignal): Promise<void>;
  /** From now on no host may use it, and each deletes what it has of it. Rejects with `unavailable` when the directory does not answer. */
  end(template: Pick<TemplateRecord, "app" | "id">): Promise<void>;
  /** This host has it no more, or has it not after all. All hosts hear of it, however long that takes. */
  left(template: Pick<TemplateRecord, "app" | "id">): void;
}
