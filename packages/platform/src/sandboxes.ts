/** Opens the port of sandboxes, if a setting says so. Without one, nothing of them is loaded. */
import { verifyToken } from "@hibernaut/api";
import type { ConnectionBudget } from "@hibernaut/connections";
import { HibernautError } from "@hibernaut/domain/errors";
import type { Resources } from "@hibernaut/machines";
import { makeKey, readKey } from "@hibernaut/secrets/key";
import type { Settings } from "@hibernaut/settings";
import type { TokenStore } from "@hibernaut/store";
import type { Logger } from "pino";

interface SandboxParts {
  resources: Resources;
  tokens: TokenStore;
  /** From which the tokens of sandboxes are derived. */
  keyFile: string;
  connections: ConnectionBudget;
  log: Logger;
}

/** Undefined without `HIBERNAUT_SANDBOX_LISTEN`. Rejects with `invalid_argument` when only one of the two files of TLS is named. */
export async function openSandboxes(
  { sandboxListen: at, sandboxDomain, sandboxTlsCert: cert, sandboxTlsKey: key }: Settings,
  { tokens, keyFile, ...parts }: SandboxParts,
): Promise<{ close(): Promise<void> } | undefined> {
  if (at === undefined) return undefined;
  if ((cert === undefined) !== (key === undefined)) {
    const missing = cert === undefined ? "HIBERNAUT_SANDBOX_TLS_CERT" : "HIBERNAUT_SANDBOX_TLS_KEY";
    throw new HibernautError(
      "invalid_argument",
      `${missing} is missing: TLS for sandboxes needs a certificate and its key.`,
    );
  }
  const { openSandboxes: open } = await import("@hibernaut/sandboxes");
  const opened = await open({
    ...{ ...parts, at, domain: sandboxDomain, secret: readKey(keyFile) ?? makeKey(keyFile) },
    ...(cert !== undefined && key !== undefined && { tls: { cert, key } }),
    holderOf(text) {
      const token = verifyToken(tokens, text);
      const [app, ...others] = token?.apps ?? [];
      // A key for several apps, or for all, does not say whose sandboxes are meant.
      return token === undefined || app === undefined || others.length > 0 ? undefined : { app, grant: token };
    },
  });
  parts.log.info({ url: opened.url, domain: sandboxDomain }, `sandboxes answer at ${opened.url}`);
  return opened;
}
