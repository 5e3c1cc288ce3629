/** What other packages may use. */
import type { AddressInfo } from "node:net";
import type { SecureContextOptions, TlsOptions } from "node:tls";
import { BACKLOG, type ConnectionBudget, cannotListen, guardHttp, RequestPlaces } from "@hibernaut/connections";
import type { Listen } from "@hibernaut/settings";
import type { FastifyInstance } from "fastify";
import type { FlyNeeds } from "./contract.ts";
import { buildFly } from "./server.ts";

export type { AskPlatform, PlatformRequest } from "./contract.ts";

interface OpenOptions extends FlyNeeds {
  at: Listen;
  /** As the platform's API has it. Without it: plain HTTP. */
  tls?: { options: SecureContextOptions & TlsOptions; follow(app: FastifyInstance): void } | undefined;
  /** Of this process, which those of the port count among. */
  connections: ConnectionBudget;
}

/** Opens the port at which Fly's clients find the platform. Rejects with `unavailable` if that is not possible. */
export async function openFly({ at, tls, connections, ...needs }: OpenOptions): Promise<{
  url: string;
  close(): Promise<void>;
}> {
  const app = await buildFly({ ...needs, places: new RequestPlaces(connections) }, tls?.options);
  tls?.follow(app);
  guardHttp(app.server, connections, tls !== undefined);
  try {
    await app.listen({ backlog: BACKLOG, ...at });
  } catch (error) {
    throw await cannotListen("The port of Fly's API", at, "HIBERNAUT_FLY_LISTEN", error);
  }
  const { port } = app.server.address() as AddressInfo;
  return { url: `${tls === undefined ? "http" : "https"}://${at.host}:${port}`, close: () => app.close() };
}
