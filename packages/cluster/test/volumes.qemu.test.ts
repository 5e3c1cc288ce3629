/**
 * On real hosts: an app that keeps what it acknowledges on a volume moves with it, while clients write.
 *
 * @module-tag again
 */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { allocatedBytes } from "@hibernaut/lib/disk-files";
import { expect, test, vi } from "vitest";
import { notebook } from "../../platform/test/helpers/notebook.ts";
import { ask } from "../../platform/test/helpers/proxied.ts";
import { slowed } from "../../platform/test/helpers/slow.ts";
import { SMALL_APP } from "../../platform/test/helpers/small-app/image.ts";
import { type Hosts, startHosts, type TestHost } from "./hosts.ts";
import { failure, run } from "./run-command.ts";

const WAIT_S = slowed(120);
const GB = 1024 ** 3;

/** What a request to the app through a host answers. */
async function through(host: TestHost, path: string, order?: string): Promise<string> {
  const sent = order === undefined ? {} : { method: "POST", body: order };
  const answer = await ask({ proxyUrl: host.served.proxyUrl, app: "shop" }, path, sent);
  expect(answer.status, answer.text).toBeLessThan(300);
  return answer.text;
}

const ordersOf = async (host: TestHost) => (await through(host, "/notes")).split("\n").filter((line) => line !== "");
const nonceOf = async (host: TestHost) => (JSON.parse(await through(host, "/")) as { nonce: string }).nonce;
const volumesOn = ({ dataDir }: TestHost) => readdir(join(dataDir, "volumes")).catch((): string[] => []);

/** A machine of the app on host a, with its volume. */
async function shop(hosts: Hosts): Promise<{ id: string; volume: string }> {
  const { client } = hosts.host("a");
  await client.createApp("shop");
  const services = [{ internal_port: 8080, autostop: "suspend" as const }];
  const config = { ...notebook(), image: SMALL_APP, guest: { memory_mb: 160 }, services };
  const made = await client.createMachine("shop", { name: "db", host: "a", config });
  await client.waitForMachine("shop", made.id, { state: ["running"], timeout: WAIT_S });
  return { id: made.id, volume: made.config.mounts?.[0]?.volume ?? "" };
}

test("orders on a volume move with their machine, none is lost, and the old host has the volume no longer", async () => {
  await using hosts = await startHosts({ count: 2 });
  const [a, b] = [hosts.host("a"), hosts.host("b")];
  const { id, volume } = await shop(hosts);
  const acknowledged: string[] = [];
  const order = async (host: TestHost) => {
    const name = `order ${acknowledged.length + 1}`;
    await through(host, "/sure", name);
    acknowledged.push(name);
  };
  for (const host of [a, b, a]) await order(host);
  const nonce = await nonceOf(b);

  expect(await failure(run(b, "machine", "move", "db", "--host", "b", "--app", "shop"))).toMatch(
    new RegExp(`has volumes: data \\(${volume}, 1 GB, of which \\d+ MB .*Add --with-volumes`),
  );

  // Awake, while a client keeps ordering.
  const ordering = new AbortController();
  const client = (async () => {
    while (!ordering.signal.aborted) await order(b);
  })();
  const moving = run(b, "machine", "move", "db", "--host", "b", "--with-volumes", "--app", "shop");
  expect(await moving).toBe(`Machine ${id} (db) is on host b now.`);
  const atTheMove = acknowledged.length;
  await vi.waitFor(() => expect(acknowledged.length).toBeGreaterThan(atTheMove), slowed(60_000));
  ordering.abort();
  await client;
  expect(await nonceOf(a)).toBe(nonce);
  expect(await ordersOf(a)).toEqual(acknowledged);
  expect([await volumesOn(a), await volumesOn(b)]).toEqual([[], [volume]]);
  const disk = await stat(join(b.dataDir, "volumes", volume, "data.ext4"));
  expect([disk.size, allocatedBytes(disk) < GB / 4]).toEqual([GB, true]);
  expect(await run(a, "volumes", "list", "--app", "shop")).toMatch(
    new RegExp(`HOST .*\\n${volume} +data +b .* ${id} `),
  );

  // With a snapshot of the volume, off a host that is emptied.
  await a.client.suspendMachine("shop", id);
  await a.client.waitForMachine("shop", id, { state: ["suspended"], timeout: WAIT_S });
  const { id: snapshot } = await a.client.createVolumeSnapshot("shop", volume);
  expect((await a.client.drainHost("b")).stayed).toMatchObject([
    { machine_id: id, reason: expect.stringContaining("Add --with-volumes") },
  ]);
  expect(await run(a, "hosts", "drain", "b", "--with-volumes")).toBe("1 machine moved off host b.");
  expect([await volumesOn(a), await volumesOn(b)]).toEqual([[volume], []]);
  expect(await b.client.listVolumeSnapshots("shop", volume)).toMatchObject([{ id: snapshot }]);
  expect(await nonceOf(b)).toBe(nonce);
  await order(b);
  expect(await ordersOf(b)).toEqual(acknowledged);
  // What the disk has is whole: a start from scratch mounts it.
  await b.client.restartMachine("shop", id);
  await b.client.waitForMachine("shop", id, { state: ["running"], timeout: WAIT_S });
  expect(await ordersOf(b)).toEqual(acknowledged);
});
