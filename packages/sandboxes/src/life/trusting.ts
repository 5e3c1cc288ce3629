/** Which sandboxes trust the authority of connections that headers are added to. */
import { messageOf } from "@hibernaut/lib/text";
import type { SandboxNeeds } from "../contract.ts";
import { trust } from "../inside/trust.ts";
import type { SandboxView } from "./view.ts";

/** As many ids as are kept; those of sandboxes that are gone are among them, and the others are asked once more. */
const MOST_KNOWN = 4_096;

export class Trusting {
  readonly #needs: SandboxNeeds;
  readonly #known = new Set<string>();

  constructor(needs: SandboxNeeds) {
    this.#needs = needs;
  }

  /** Has a running sandbox trust it, if headers are added to its requests. Never rejects: its log says why it does not. */
  async look({ record: { app, id, sandbox } }: SandboxView): Promise<void> {
    if (sandbox.network?.rules === undefined || this.#known.has(id)) return;
    const { resources, egressAuthority, log } = this.#needs;
    try {
      await trust((spec) => resources.commands.run(app, id, spec), await egressAuthority());
      if (this.#known.size >= MOST_KNOWN) this.#known.clear();
      this.#known.add(id);
    } catch (error) {
      const message = "a sandbox does not trust what its connections with added headers end at";
      log.warn({ machine: id, reason: messageOf(error) }, message);
    }
  }
}
