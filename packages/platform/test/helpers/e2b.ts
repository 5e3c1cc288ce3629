/** A platform as E2B's own client uses it. */
import type { ConnectionOpts } from "e2b";
import { sandboxImage } from "./sandbox-image.ts";
import type { Place } from "./served.ts";

/** With this, a platform listens for that client, too. */
export const WITH_SANDBOXES = { HIBERNAUT_SANDBOX_LISTEN: "127.0.0.1:0" };

/** A key for sandboxes in one app, and where the platform listens at the moment: that may change when it starts again. */
export async function e2bOptions(place: Place, app = place.app): Promise<ConnectionOpts> {
  const { token: apiKey } = await place.client.createToken("agents", { apps: [app], e2b: true });
  return {
    apiKey,
    domain: "localhost",
    get apiUrl() {
      return place.served.sandboxUrl;
    },
    get sandboxUrl() {
      return place.served.sandboxUrl;
    },
  };
}

/** A tenant with a new app of its own. */
export async function tenant(place: Place, app: string): Promise<ConnectionOpts> {
  await place.client.createApp(app);
  return e2bOptions(place, app);
}

/** Makes the template of sandboxes that name none, or `name`, with `warm` machines in its pool. */
export async function sandboxTemplate(place: Place, app = place.app, name = "base", warm = 0): Promise<void> {
  const from = { image: await sandboxImage(), guest: { memory_mb: 256 } };
  await place.client.createTemplate(app, { name, from, warm_pool: warm });
}

/** A request to the API of sandboxes. A body is sent as JSON: a text as it is. */
export function control(
  { apiKey, apiUrl }: ConnectionOpts,
  method: string,
  path: string,
  body?: string | object,
): Promise<Response> {
  const headers = { "X-API-Key": String(apiKey) };
  if (body === undefined) return fetch(`${apiUrl}${path}`, { method, headers });
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return fetch(`${apiUrl}${path}`, { method, headers: { ...headers, "Content-Type": "application/json" }, body: text });
}
