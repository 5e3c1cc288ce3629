/** Wild requests to the port of sandboxes, from clients that do their worst; every reply is judged. */
import { expect, onTestFinished } from "vitest";
import { seeded } from "../../api/test/random.ts";
import { openPort, type Port, type Reply } from "./port.ts";
import { inside, newSandboxes, newTemplate, newTenant, newVolumes, type Tenant } from "./tenant.ts";
import type { WildRequest } from "./wild-breaks.ts";
import { wildRequest } from "./wild-requests.ts";

/** More at a time would only queue. */
const AT_ONCE = 8;
/** How many lines of the log are kept. */
const MOST_LOGGED = 100;
/** A reply that takes longer than this hangs, in milliseconds. */
const HANGS_MS = 20_000;
/** What a connection takes of a body that nobody reads, at least. */
const READ_BYTES = 64 * 1024;
/** Connect's words for an error, and HTTP's number of each. */
const CONNECT_CODES =
  /^(canceled|invalid_argument|deadline_exceeded|not_found|already_exists|permission_denied|resource_exhausted|failed_precondition|aborted|out_of_range|unimplemented|unavailable|unauthenticated)$/;
/** What Node and the services say without a word: of the message, not of what it asks for. */
const WORDLESS = new Set([400, 405, 408, 413, 415, 417, 431, 505]);

/**
 * Sends that many requests, of which some get each of the usual statuses. `after` is called whenever a batch has been answered,
 * with how many requests that were.
 */
export async function withstand(
  requests: number,
  seed: number,
  { least = 1, after = () => {} }: { least?: number; after?(sent: number): void } = {},
): Promise<void> {
  const port = await openPort();
  onTestFinished(() => port.close());
  const tenants = [await newTenant(port, "shop"), await newTenant(port, "bank")] as const;
  const random = seeded(seed);
  const seen = new Map<number, number>();
  for (let sent = 0; sent < requests; sent += AT_ONCE) {
    const batch = Array.from({ length: AT_ONCE }, () => wildRequest(port, tenants, random));
    await Promise.all(
      batch.map(async (request) => {
        const what = `seed ${seed}, request ${sent}: ${describe(request)}`;
        const reply = await answered(port, request, what);
        judge(port, request, reply, what);
        seen.set(reply.status, (seen.get(reply.status) ?? 0) + 1);
      }),
    );
    for (const tenant of tenants) await revive(port, tenant);
    // What only tests remember would look as if the platform kept it.
    port.done.length = 0;
    port.logged.splice(0, port.logged.length - MOST_LOGGED);
    after(sent + AT_ONCE);
  }
  // Requests that never get past the door or the validation would prove nothing.
  for (const status of [200, 201, 202, 204, 400, 401, 404, 409, 501, 502])
    expect(seen.get(status) ?? 0, `replies with ${status}`).toBeGreaterThanOrEqual(least);
  expect(await port.ask("GET /health")).toMatchObject({ status: 204 });
}

/** A request may have ended a sandbox, or made others. The next ones find the two that they know, and few more. */
async function revive(port: Port, tenant: Tenant): Promise<void> {
  const { machines, templates, quotas } = port.platform;
  const { app } = tenant;
  quotas.set(app, {});
  if (!templates.list(app).some(({ template }) => template.id === tenant.templateId))
    tenant.templateId = await newTemplate(port, tenant);
  const states = new Map(machines.list(app).map(({ record }) => [record.id, record.state]));
  const programs = await port.ask("POST /process.Process/List", {
    headers: { ...inside(tenant.running, tenant.token), "content-type": "application/json" },
    body: "{}",
  });
  if (!programs.body.includes(tenant.program) || states.get(tenant.paused) !== "suspended")
    Object.assign(tenant, await newSandboxes(port, tenant));
  if (states.get(tenant.keeper) !== "running") Object.assign(tenant, await newVolumes(port, tenant));
  const known = [tenant.running, tenant.paused, tenant.keeper];
  for (const { record } of machines.list(app))
    if (record.sandbox !== undefined && !known.includes(record.id)) machines.destroy(app, record.id, { force: true });
  for (const { template } of templates.list(app))
    if (template.id !== tenant.templateId) await templates.delete(app, template.id);
}

function describe({ route, headers, body }: WildRequest): string {
  const said = Object.entries(headers ?? {}).slice(0, 8);
  return `${route.slice(0, 300)} ${JSON.stringify(said).slice(0, 600)} ${body?.length}: ${body?.toString().slice(0, 300)}`;
}

async function answered(port: Port, request: WildRequest, what: string): Promise<Reply> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`no answer: ${what}`)), HANGS_MS);
  try {
    return await Promise.race([port.ask(request.route, request), late.promise]);
  } catch (error) {
    // The port may hang up on a body that it does not read; it says why, unless that is lost with the connection.
    if (
      Buffer.byteLength(request.body ?? "") > READ_BYTES &&
      /ECONNRESET|EPIPE|socket hang up|aborted/.test(String(error))
    )
      return { status: 0, headers: {}, body: "" };
    throw new Error(what, { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

function judge({ world }: Port, { form, route }: WildRequest, { status, body }: Reply, what: string): void {
  const said = `${what}\n→ ${status} ${body.slice(0, 500)}`;
  if (status >= 500) expect([501, 502, 503, 504], said).toContain(status);
  // Only a client that says how long it has hears that it took too long.
  if (status === 504) expect(what).toContain("connect-timeout-ms");
  for (const secret of [world.folder, "node_modules", "file:///", "\n    at ", ".ts:"])
    expect(body.includes(secret), said).toBe(false);
  const inStream = /\{"error":(\{.*\})\}$/.exec(body)?.[1];
  if (form === "connect" && status === 200 && inStream !== undefined)
    expect(JSON.parse(inStream), said).toMatchObject({ code: expect.stringMatching(CONNECT_CODES) as string });
  if (status < 400 || route.startsWith("HEAD") || (body === "" && WORDLESS.has(status))) return;
  const told = JSON.parse(body) as { code: unknown };
  const isConnect = form === "connect" && typeof told.code === "string";
  expect(told, said).toMatchObject({
    code: isConnect ? (expect.stringMatching(CONNECT_CODES) as string) : status,
    message: expect.any(String) as string,
  });
}
