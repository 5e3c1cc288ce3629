/** Opens the port for Fly's clients, if a setting says so. Without one, nothing of it is loaded. */
import { type Api, apiTlsOf, askWithin, followTls, serverTls, verifyToken } from "@hibernaut/api";
import type { ConnectionBudget } from "@hibernaut/connections";
import type { Settings } from "@hibernaut/settings";
import type { TokenStore } from "@hibernaut/store";
import type { Logger } from "pino";

interface FlyParts {
  /** It answers all of them, as it does those that come to its own port. */
  api: Api;
  tokens: TokenStore;
  connections: ConnectionBudget;
  log: Logger;
}

/** Undefined without `HIBERNAUT_FLY_LISTEN`. Clients need what they need at the API: a certificate, where that asks for one. */
export async function openFlyPort(
  settings: Settings,
  { api, tokens, connections, log }: FlyParts,
): Promise<{ url: string; close(): Promise<void> } | undefined> {
  const { flyListen: at } = settings;
  if (at === undefined) return undefined;
  const { openFly } = await import("@hibernaut/fly");
  const files = apiTlsOf(settings);
  const onFault = (err: unknown) => log.error({ err }, "the port for Fly's clients keeps its certificate");
  const opened = await openFly({
    ...{ at, connections, log },
    ask: (request) => askWithin(api, request),
    grantOf: (token) => verifyToken(tokens, token),
    ...(files && {
      tls: { options: serverTls(files), follow: (app) => followTls(app, files, onFault) },
    }),
  });
  log.info({ url: opened.url }, `Fly's clients are answered at ${opened.url}`);
  return opened;
}
