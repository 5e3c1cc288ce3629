/** The OpenAPI document without a running platform, for tools that generate code from it. */
import pino from "pino";
import { buildApi } from "./app.ts";
import type { ApiDeps } from "./deps.ts";

/**
 * Returns what `GET /openapi.json` returns. Registers every route and listens nowhere, so no handler runs
 * and nothing has to be behind the API.
 */
export async function apiDocument(version: string): Promise<object> {
  const read = { platform: { version, region: "local" }, logger: pino({ level: "silent" }) };
  const api = await buildApi(read as unknown as ApiDeps);
  try {
    return api.swagger();
  } finally {
    await api.close();
  }
}
