/** Wild requests made from the OpenAPI document, with tokens of every kind; every reply is judged. */
import { expect } from "vitest";
import { createToken } from "../src/tokens.ts";
import { type TestApi, testApi } from "./helpers.ts";
import type { ApiDocument, Call } from "./openapi-check.ts";
import { type Random, seeded } from "./random.ts";
import { verdictOf, type Word } from "./scope-table.ts";
import { HOSTS, type Schema, type Schemas, wildValue } from "./wild-values.ts";

interface Operation {
  parameters?: { name: string; in: string; schema: Schema }[];
  requestBody?: { content: Record<string, { schema: Schema }> };
}

interface FuzzToken {
  text: string;
  scopes: readonly Word[];
  apps: readonly string[] | null;
}

interface FuzzedRequest {
  route: string;
  token: FuzzToken;
  app: string | undefined;
  path: string;
  body: string | undefined;
  type: string;
}

/** More at a time would only queue. */
const AT_ONCE = 8;
/** A reply that takes longer than this hangs, in milliseconds. */
const HANGS_MS = 30_000;
const APPS = ["shop", "bank", "none", "..%2f..", "%00", "a".repeat(100)] as const;

/** Sends that many requests, half of them with other scopes, of which some get each of the usual statuses. */
export async function withstand(requests: number, seed: number, least = 5): Promise<void> {
  const { server, call } = await testApi({}, { apps: [] });
  const document = (await (await fetch(`${server.url}/openapi.json`)).json()) as ApiDocument;
  const world = await populate(server, call);
  const random = seeded(seed);
  const seen = new Map<number, number>();
  let refused = 0;
  for (let sent = 0; sent < requests; sent += AT_ONCE) {
    const batch = Array.from({ length: AT_ONCE }, () => wildRequest(document, world, random));
    await Promise.all(
      batch.map(async (request) => {
        const status = await judge(call, request, `seed ${seed}, request ${sent}`);
        seen.set(status, (seen.get(status) ?? 0) + 1);
        if (expectedOf(request) !== "in") refused += 1;
      }),
    );
    // A drain would refuse everything after it.
    server.platform.drain.end();
    await revive(server, world);
  }
  expect(server.logged.filter(({ level }) => Number(level) >= 50)).toEqual([]);
  // Requests that never get past the door or the validation would prove nothing.
  for (const status of [200, 201, 400, 403, 404])
    expect(seen.get(status) ?? 0, `replies with ${status}`).toBeGreaterThan(least);
  expect(refused).toBeGreaterThan(requests / 4);
}

interface World {
  full: FuzzToken;
  others: readonly FuzzToken[];
  machines: Map<string, string>;
}

async function populate(server: TestApi, call: Call): Promise<World> {
  const machines = new Map<string, string>();
  for (const app of ["shop", "bank"]) await call("POST", "/v1/apps", { app_name: app });
  const make = (scopes: Word[], apps: string[] | null): FuzzToken => ({
    text: createToken(server.tokens, `${scopes.join()} ${apps?.join() ?? "all"}`, { scopes, apps }).token,
    scopes,
    apps,
  });
  const words: Word[] = ["read", "exec", "deploy", "admin"];
  const others = words.flatMap((scope) => [make([scope], null), make([scope], ["shop"])]);
  const world = { full: make(["admin"], null), others, machines };
  await revive(server, world);
  return world;
}

function wildRequest(document: ApiDocument, { full, others, machines }: World, random: Random): FuzzedRequest {
  const [template, item] = random.pick(Object.entries(document.paths));
  const [method, operation] = random.pick(Object.entries(item)) as [string, Operation];
  const schemas = document.components.schemas as Schemas;
  const named = template.includes("{app_name}");
  const any = random.oneIn(10) ? random.pick(APPS) : random.pick(APPS.slice(0, 2));
  // With its app, the limited tokens would lose all that they reach.
  const app = method === "delete" && template.endsWith("{app_name}") && any === "shop" ? "bank" : any;
  const words = [
    "no-such",
    "0".repeat(14),
    "%00",
    "%C3%BF",
    "1",
    machines.get(app) ?? "x",
    machines.get("bank") ?? "x",
  ];
  const path = template
    .replace("{app_name}", app)
    .replace("{machine_id}", random.oneIn(3) ? random.pick(words) : (machines.get(app) ?? "x"))
    .replaceAll(/\{host(name)?\}/g, () => encodeURIComponent(random.pick(HOSTS)))
    .replaceAll(/\{\w+\}/g, () => random.pick(words));
  return {
    route: `${method.toUpperCase()} ${template}`,
    // Half of them with a token that may do less.
    token: random.oneIn(2) ? full : random.pick(others),
    app: named ? decodeURIComponent(app) : undefined,
    path: path + queryOf(template, operation, schemas, random),
    body: bodyOf(method, template, operation, schemas, random),
    type: random.oneIn(40) ? "text/plain" : "application/json",
  };
}

function queryOf(template: string, { parameters = [] }: Operation, schemas: Schemas, random: Random): string {
  // These would only be slow: a wait for what never comes, and logs without an end.
  if (template.endsWith("/wait")) return "?timeout=1&state=settled";
  if (template === "/v1/stream") return "?follow=0&since=0";
  const query = parameters.filter((one) => one.in === "query" && one.name !== "follow" && random.oneIn(2));
  const pairs = query.map(({ name, schema }) => {
    const value = wildValue(schema, schemas, random);
    return `${name}=${encodeURIComponent(String(typeof value === "object" ? JSON.stringify(value) : value).toWellFormed())}`;
  });
  return pairs.length === 0 ? "" : `?${pairs.join("&")}`;
}

function bodyOf(
  method: string,
  template: string,
  { requestBody }: Operation,
  schemas: Schemas,
  random: Random,
): string | undefined {
  if (method === "get" || (requestBody === undefined && !random.oneIn(10))) return undefined;
  const schema = requestBody?.content["application/json"]?.schema ?? {};
  const value = wildValue(schema, schemas, random);
  // The fake machine of a release's command never ends by itself, and the reply comes when it has.
  if (template.endsWith("/command") && typeof value === "object") Object.assign(value ?? {}, { timeout: 1 });
  const text = JSON.stringify(value) ?? "";
  return random.oneIn(30) ? text.slice(0, random.below(text.length + 1)) : text;
}

function expectedOf({ route, token, app }: FuzzedRequest) {
  return verdictOf(route, token, app);
}

async function judge(call: Call, request: FuzzedRequest, where: string): Promise<number> {
  const { route, token, path, body, type } = request;
  const method = route.split(" ")[0] ?? "";
  const what = `${where}: ${method} ${path} ${token.scopes.join()} ${token.apps?.join() ?? "all"} ${body?.slice(0, 500)}`;
  const headers = { authorization: `Bearer ${token.text}`, ...(body !== undefined && { "content-type": type }) };
  const init = { headers, signal: AbortSignal.timeout(HANGS_MS) };
  const { status, body: reply } = await call(method, path, body, init).catch((error: unknown) => {
    throw new Error(what, { cause: error });
  });
  // 503 has its own documented codes; anything else is a fault of the platform.
  if (status >= 500) expect(reply, what).toMatchObject({ error: expect.stringMatching(/^(unavailable|draining)$/) });
  if (status >= 400) {
    expect(Object.keys(reply), what).toEqual(["error", "message", "details", "request_id"]);
  }
  const expected = expectedOf(request);
  if (expected === "refused") expect(status, what).toBe(403);
  if (expected === "hidden") expect([400, 404], what).toContain(status);
  if (expected === "in" && status === 403) expect(Object.keys(reply.details), what).toContain(takesMore(route));
  return status;
}

/**
 * A detail of the 403 that a token which may use `route` can still get: a webhook for everything, a place in a network
 * (which concerns other apps) and an image of the host take more than the route does.
 */
function takesMore(route: string): string {
  if (route.includes("/webhooks")) return "needs_apps";
  return route === "PATCH /v1/apps/{app_name}" ? "missing_scope" : "upload";
}

/** A request may have deleted an app or a machine. The next one should find them again. */
async function revive({ platform, world }: TestApi, { machines }: Pick<World, "machines">): Promise<void> {
  for (const app of ["shop", "bank"]) {
    if (world.store.apps.get(app) === undefined) platform.apps.create(app);
    // Or it has made the app's quota too small for what follows.
    platform.quotas.set(app, {});
    const known = world.store.machines.get(machines.get(app) ?? "");
    if (known?.app === app && known.state !== "destroyed" && known.state !== "destroying") continue;
    const { record } = await platform.machines.create(app, { config: { image: "x" } });
    machines.set(app, record.id);
  }
}
