/** Opens the port for Fly's clients, if a setting says so. Without one, nothing of it is loaded. */
import type { Api } from "@hibernaut/api";
import type { ConnectionBudget } from "@hibernaut/connections";
import type { Settings } from "@hibernaut/settings";
import type { Logger } from "pino";

interface FlyParts {
  /** It answers all of them, as it does those that come to its own port. */
  api: Api;
  connections: ConnectionBudget;
  log: Logger;
}

/** Undefined without `HIBERNAUT_FLY_LISTEN`. */
export async function openFlyPort(
  { flyListen: at, apiTlsCert: cert, apiTlsKey: key }: Settings,
  { api, connections, log }: FlyParts,
): Promise<{ url: string; close(): Promise<void> } | undefined> {
  if (at === undefined) return undefined;
  const { openFly } = await import("@hibernaut/fly");
  const opened = await openFly({
    ...{ at, connections, log },
    ask: (request) => api.inject(request),
    ...(cert !== undefined && key !== undefined && { tls: { cert, key } }),
  });
  log.info({ url: opened.url }, `Fly's clients are answered at ${opened.url}`);
  return opened;
}
