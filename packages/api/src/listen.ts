/** Opens the API's port. */
import type { AddressInfo } from "node:net";
import { BACKLOG, type ConnectionBudget, cannotListen, guardHttp } from "@hibernaut/connections";
import type { Listen } from "@hibernaut/settings";
import type { Api } from "./deps.ts";

/**
 * Returns the API's URL. Rejects with `unavailable` if the port cannot be opened.
 *
 * @param connections of this process, which those of the port count among
 */
export async function listenForApi(api: Api, at: Listen, connections: ConnectionBudget): Promise<string> {
  guardHttp(api.server, connections, api.initialConfig.https !== undefined);
  try {
    await api.listen({ backlog: BACKLOG, ...at });
  } catch (error) {
    throw await cannotListen("The API", at, "HIBERNAUT_API_LISTEN", error);
  }
  const { address, family, port } = api.server.address() as AddressInfo;
  const scheme = api.initialConfig.https === undefined ? "http" : "https";
  return `${scheme}://${family === "IPv6" ? `[${address}]` : address}:${port}`;
}
