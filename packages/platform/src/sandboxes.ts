/** Opens the port of sandboxes, if a setting says so. Without one, nothing of them is loaded. */
import { join } from "node:path";
import type { ConnectionBudget } from "@hibernaut/connections";
import { HibernautError } from "@hibernaut/domain/errors";
import type { GuestCommand } from "@hibernaut/guest";
import type { Resources } from "@hibernaut/machines";
import type { openSandboxes as open, SandboxNeeds } from "@hibernaut/sandboxes";
import type { Settings } from "@hibernaut/settings";
import type { BuildStore, TokenRecord } from "@hibernaut/store";
import type { Logger } from "pino";

/** Programs of sandboxes that an earlier platform started. Machines are recovered before the port opens, so they wait for it. */
export class KeptCommands {
  #waiting: Kept[] = [];
  #adopt: ((...kept: Kept) => void) | undefined;

  /** Takes one in, as `onKeptCommand` of machines. */
  take(...kept: Kept): void {
    if (this.#adopt === undefined) this.#waiting.push(kept);
    else this.#adopt(...kept);
  }

  /** From now on, all go there, those that wait first. */
  hand(adopt: (...kept: Kept) => void): void {
    this.#adopt = adopt;
    for (const kept of this.#waiting.splice(0)) adopt(...kept);
  }
}

type Kept = [machineId: string, command: GuestCommand, label: Buffer];

interface SandboxParts {
  resources: Resources;
  /** The record of a token that is valid now. */
  verify(text: string): TokenRecord | undefined;
  builds: BuildStore;
  volumes: SandboxNeeds["volumes"];
  /** From which the tokens of sandboxes are derived. */
  secret(): Buffer;
  vault: SandboxNeeds["vault"];
  egressAuthority(): Promise<string>;
  connections: ConnectionBudget;
  kept: KeptCommands;
  log: Logger;
}

/** The port of sandboxes, while it is open. */
export type OpenedSandboxes = Awaited<ReturnType<typeof open>>;

/** Undefined without `HIBERNAUT_SANDBOX_LISTEN`. Rejects with `invalid_argument` when only one of the two files of TLS is named. */
export async function openSandboxes(
  { dataDir, sandboxListen: at, sandboxDomain, sandboxTlsCert: cert, sandboxTlsKey: key }: Settings,
  { verify, secret, kept, ...parts }: SandboxParts,
): Promise<OpenedSandboxes | undefined> {
  if (at === undefined) {
    // They run on, and must not wait for someone who reads what they print.
    kept.hand((_machine, { stdout, stderr }) => void [stdout.resume(), stderr.resume()]);
    return undefined;
  }
  if ((cert === undefined) !== (key === undefined)) {
    const missing = cert === undefined ? "HIBERNAUT_SANDBOX_TLS_CERT" : "HIBERNAUT_SANDBOX_TLS_KEY";
    throw new HibernautError(
      "invalid_argument",
      `${missing} is missing: TLS for sandboxes needs a certificate and its key.`,
    );
  }
  const sandboxes = await import("@hibernaut/sandboxes");
  const opened = await sandboxes.openSandboxes({
    ...{ ...parts, at, domain: sandboxDomain, secret: secret() },
    uploadFolder: join(dataDir, "build-uploads"),
    ...(cert !== undefined && key !== undefined && { tls: { cert, key } }),
    holderOf(text) {
      const token = verify(text);
      const [app, ...others] = token?.apps ?? [];
      // A key for several apps, or for all, does not say whose sandboxes are meant.
      return token === undefined || app === undefined || others.length > 0 ? undefined : { app, grant: token };
    },
  });
  kept.hand(opened.adopt);
  parts.log.info({ url: opened.url, domain: sandboxDomain }, `sandboxes answer at ${opened.url}`);
  return opened;
}
