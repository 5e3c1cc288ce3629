/**
 * On real hosts: a template goes to another host, through a kill of the one that sends it, and machines wake there from its
 * memory. It is deleted everywhere, and they stay.
 *
 * @module-tag again
 */
import { existsSync } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { ask } from "../../platform/test/helpers/proxied.ts";
import { slowed } from "../../platform/test/helpers/slow.ts";
import { SMALL_APP } from "../../platform/test/helpers/small-app/image.ts";
import { type Hosts, startHosts, type TestHost } from "./hosts.ts";

const WAIT_S = slowed(120);
/** So that a copy takes long enough to be cut short, in MB per second. */
const RATE = "4";

/** Asks the app through a host. Resolves with what the machine that answers remembers. */
async function askThrough(hosts: Hosts, name: string) {
  const answer = await ask({ proxyUrl: hosts.host(name).served.proxyUrl, app: "shop" });
  expect(answer.status, answer.text).toBe(200);
  return JSON.parse(answer.text) as { nonce: string; count: number };
}

/** What has come of templates to a host that is not whole, in bytes on its disk. */
async function arrived({ dataDir }: TestHost): Promise<number> {
  const folder = join(dataDir, "templates", "arriving");
  if (!existsSync(folder)) return 0;
  const files = await readdir(folder, { recursive: true, withFileTypes: true });
  const sizes = files.filter((file) => file.isFile()).map(({ parentPath, name }) => stat(join(parentPath, name)));
  return (await Promise.all(sizes)).reduce((sum, { blocks }) => sum + blocks * 512, 0);
}

test("a template goes to the host that was asked for, also when its own is killed on the way, and machines wake there", async () => {
  await using hosts = await startHosts({ count: 2, env: { HIBERNAUT_MOVE_RATE: RATE } });
  const [a, b] = [hosts.host("a"), hosts.host("b")];
  await a.client.createApp("shop");
  const services = [{ internal_port: 8080, autostop: "suspend" as const }];
  const config = { image: SMALL_APP, guest: { memory_mb: 160 }, services };
  const { id: parent } = await a.client.createMachine("shop", { name: "one", host: "a", config });
  await a.client.waitForMachine("shop", parent, { state: ["running"], timeout: WAIT_S });
  const before = await askThrough(hosts, "a");
  const { id } = await a.client.createTemplate("shop", { from: parent, name: "ready" });
  await a.client.stopMachine("shop", parent);
  await a.client.waitForMachine("shop", parent, { state: ["stopped"], timeout: WAIT_S });
  await vi.waitFor(async () => expect(await b.client.listTemplates("shop")).toMatchObject([{ id, hosts: ["a"] }]));

  // The host that sends it dies in the middle.
  const cut = b.client
    .createMachine("shop", { template: "ready", host: "b", name: "two" })
    .catch((error: Error) => error);
  await vi.waitFor(async () => expect(await arrived(b)).toBeGreaterThan(4 * 1024 * 1024), slowed(60_000));
  await a.served.kill();
  expect(await cut).toMatchObject({ code: "host_unreachable", details: { template_missing_on: "b" } });
  const part = await arrived(b);
  expect(part).toBeGreaterThan(0);
  expect(existsSync(join(b.dataDir, "templates", id))).toBe(false);

  // So does the one that gets it, and both are back.
  await b.served.kill();
  await Promise.all([a.served.start(), b.served.start()]);
  await hosts.settled("a", "b");
  expect(await arrived(b)).toBe(part);
  const born = await b.client.createMachine("shop", { template: "ready", host: "b", name: "two" });
  expect(born).toMatchObject({ host: "b", origin: { kind: "template", template: id, machine_id: parent } });
  await b.client.waitForMachine("shop", born.id, { state: ["running", "failed"], timeout: WAIT_S });
  expect(await a.client.getMachine("shop", born.id)).toMatchObject({ state: "running", last_boot: { kind: "resume" } });
  expect(await askThrough(hosts, "a")).toMatchObject({ nonce: before.nonce, count: before.count + 1 });
  expect(await arrived(b)).toBe(0);

  // Now both have it, and either one is enough.
  await vi.waitFor(async () =>
    expect(await a.client.getTemplate("shop", "ready")).toMatchObject({ hosts: ["a", "b"], machines: [born.id] }),
  );
  await a.client.deleteTemplate("shop", id);
  expect(await b.client.listTemplates("shop")).toEqual([]);
  for (const { dataDir } of [a, b]) expect(existsSync(join(dataDir, "templates", id))).toBe(false);
  expect(await askThrough(hosts, "b")).toMatchObject({ nonce: before.nonce, count: before.count + 2 });
});
