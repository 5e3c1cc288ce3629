/** What is written about machines for programs, changed without a new version: they neither restart nor lose a snapshot. */
import { type Metadata, type MetadataChange, requireMetadataRoom } from "@hibernaut/domain/metadata";
import type { ControllerSet } from "../controller-set.ts";

/** Every method throws `not_found` when there is no such machine; a `word` is its id, its name, or the beginning of its id. */
export class MachineMetadata {
  readonly #controllers: ControllerSet;

  constructor(controllers: ControllerSet) {
    this.#controllers = controllers;
  }

  /** Returns the metadata; empty without any. */
  get(app: string, word: string): Metadata {
    return this.#controllers.find(app, word).record.config.metadata ?? {};
  }

  /**
   * Changes what is named, and returns all of it then. Throws `invalid_argument` for more keys than a machine can have, and
   * `aborted` while the machine is being moved.
   */
  change(app: string, word: string, change: MetadataChange): Metadata {
    const controller = this.#controllers.find(app, word);
    const { config, pending } = controller.record;
    for (const each of pending === null ? [config] : [config, pending.config])
      requireMetadataRoom(each.metadata, change);
    controller.remark({ type: "metadata", change });
    return controller.record.config.metadata ?? {};
  }
}
