/** Wild requests to every route of Fly's API; every reply is judged. */
import { expect } from "vitest";
import { type Random, seeded } from "../../api/test/random.ts";
import { wildValue } from "../../api/test/wild-values.ts";
import { startFly, type TestFly } from "./helpers.ts";
import { type FlyRoute, pathOf, registered } from "./routes.ts";

/** More at a time would only queue. */
const AT_ONCE = 8;
const WORDS = ["nothing", "..", "%00", "\u0000", "ÿ", "0".repeat(14), "a".repeat(300), "a/b", "__proto__"];
const QUERIES = [
  "",
  "?force=true",
  "?kill=1",
  "?state=started",
  "?metadata.user=7",
  "?metadata.__proto__=1",
  "?ttl=x",
  "?limit=-1",
  "?%00=%ff",
];

/** Sends that many. Rejects at the first reply that is not as it should be. */
export async function withstand(requests: number, seed: number, least: number): Promise<void> {
  const fly = await startFly();
  const random = seeded(seed);
  const routes = registered();
  const seen = new Map<number, number>();
  const machines = new Map<string, string>();
  for (let sent = 0; sent < requests; sent += AT_ONCE) {
    await revive(fly, machines);
    const batch = Array.from({ length: AT_ONCE }, () => wildRequest(routes, machines, random));
    for (const status of await Promise.all(batch.map((one) => judge(fly, one, `seed ${seed}, request ${sent}`))))
      seen.set(status, (seen.get(status) ?? 0) + 1);
  }
  expect(fly.platform.logged.filter(({ level }) => Number(level) >= 50)).toEqual([]);
  // Requests that never get past the door would prove nothing.
  for (const status of [200, 400, 404, 501])
    expect(seen.get(status) ?? 0, `replies with ${status}`).toBeGreaterThan(least);
}

interface WildRequest {
  method: string;
  path: string;
  body: string | undefined;
}

function wildRequest(routes: readonly FlyRoute[], machines: ReadonlyMap<string, string>, random: Random): WildRequest {
  const { method, url, body } = random.pick(routes);
  const app = random.oneIn(10) ? random.pick(WORDS) : random.pick(["shop", "bank"]);
  const name = (usual: string) => (random.oneIn(4) ? random.pick(WORDS) : usual);
  const names = {
    app_name: app,
    machine_id: name(machines.get(app) ?? "x"),
    key: name("user"),
    secret_name: name("PIN"),
  };
  // A wait for what never comes would only be slow.
  const query = url.endsWith("/wait") ? "?timeout=1&state=settled" : random.pick(QUERIES);
  const value = body === undefined ? {} : wildValue(body, {}, random);
  const text = JSON.stringify(value) ?? "";
  const cut = random.oneIn(30) ? text.slice(0, random.below(text.length + 1)) : text;
  return { method, path: pathOf(url, names) + query, body: method === "GET" ? undefined : cut };
}

async function judge({ call }: TestFly, { method, path, body }: WildRequest, where: string): Promise<number> {
  const what = `${where}: ${method} ${path} ${body?.slice(0, 500)}`;
  const answer = await call<{ error?: unknown; status?: unknown }>(method, path, body).catch((error: unknown) => {
    throw new Error(what, { cause: error });
  });
  // 501 has its sentence, 503 and 504 come from documented codes; anything else is a fault.
  if (answer.status >= 500) expect([501, 503, 504], `${what} ${JSON.stringify(answer.body)}`).toContain(answer.status);
  if (answer.status >= 400) {
    expect(Object.keys(answer.body), what).toEqual(["error", "status"]);
    expect(String(answer.body.error).length, what).toBeGreaterThan(10);
  }
  return answer.status;
}

/** A request may have deleted an app or a machine. */
async function revive({ platform: { platform, world } }: TestFly, machines: Map<string, string>): Promise<void> {
  for (const app of ["shop", "bank"]) {
    if (world.store.apps.get(app) === undefined) platform.apps.create(app);
    const known = world.store.machines.get(machines.get(app) ?? "");
    if (known?.app === app && !known.state.startsWith("destroy")) continue;
    const { record } = await platform.machines.create(app, { config: { image: "x" } });
    machines.set(app, record.id);
  }
}
