/**
 * etcd is restored from a backup, on real hosts: machines that were made or moved since are there, and each runs once.
 *
 * @module-tag again
 */
import { expect, test, vi } from "vitest";
import { longOr } from "../../platform/test/helpers/long.ts";
import { ask } from "../../platform/test/helpers/proxied.ts";
import { slowed } from "../../platform/test/helpers/slow.ts";
import { SMALL_APP } from "../../platform/test/helpers/small-app/image.ts";
import { type Hosts, startHosts } from "./hosts.ts";
import { run } from "./run-command.ts";

const WAIT_S = slowed(120);
/** Only a fault reaches it: hosts try again after ten seconds at the latest. */
const SETTLE = { timeout: slowed(60_000), interval: 100 };

/** The rules of disputes are tested on fakes (`ownership/restored`). */
const testInLong = longOr(test, test.skip);

/** A machine that counts the requests in its memory, which has a nonce. */
async function counter(hosts: Hosts, app: string): Promise<string> {
  const { client } = hosts.host("a");
  const services = [{ internal_port: 8080, autostop: "suspend" as const }];
  const config = { image: SMALL_APP, guest: { memory_mb: 160 }, services };
  const { id } = await client.createMachine(app, { name: "one", host: "a", config });
  await client.waitForMachine(app, id, { state: ["running"], timeout: WAIT_S });
  return id;
}

async function count(hosts: Hosts, through: string, app: string): Promise<{ nonce: string; count: number }> {
  const { status, text } = await ask({ proxyUrl: hosts.host(through).served.proxyUrl, app });
  expect(status, text).toBe(200);
  return JSON.parse(text) as { nonce: string; count: number };
}

/** Requests through both hosts are answered by the same memory as before. */
async function expectThere(hosts: Hosts, app: string, before: { nonce: string; count: number }): Promise<void> {
  for (const [index, through] of ["a", "b"].entries())
    expect(await count(hosts, through, app)).toMatchObject({ nonce: before.nonce, count: before.count + index + 1 });
}

const disputed = async (hosts: Hosts, name: string) =>
  (await hosts.host(name).client.getHealth()).cluster?.disputed_machines ?? 0;
const guests = async (hosts: Hosts) => (await Promise.all(hosts.all.map((host) => host.guests()))).flat();

test("machines that were moved or created after the backup are there, and run once", async () => {
  await using hosts = await startHosts({ count: 2 });
  const [a, b] = [hosts.host("a"), hosts.host("b")];
  for (const app of ["shop", "stall"]) await a.client.createApp(app);
  const moved = await counter(hosts, "shop");
  const restore = await hosts.etcd.backup();
  await hosts.settled("a", "b");
  await a.client.moveMachine("shop", moved, { host: "b" });
  const late = await counter(hosts, "stall");
  const shop = await count(hosts, "a", "shop");
  const stall = await count(hosts, "b", "stall");
  expect(await b.guests()).toHaveLength(1);

  // As the documentation says: with all platforms stopped. Their guests run on.
  await a.served.stop();
  await b.served.stop();
  await restore();
  await b.served.start();
  // The backup gives the machine to host a, which is not there to say that it has none: it sleeps until then.
  await vi.waitFor(async () => expect(await b.guests()).toEqual([]), SETTLE);
  expect(await disputed(hosts, "b")).toBe(1);
  expect((await b.cluster()).disputed).toEqual([
    { machine_id: moved, reason: expect.stringContaining("restored from an older backup") },
  ]);
  await a.served.start();
  await hosts.settled("a", "b");
  await vi.waitFor(
    async () => expect([await disputed(hosts, "a"), await disputed(hosts, "b")]).toEqual([0, 0]),
    SETTLE,
  );
  await b.client.waitForMachine("shop", moved, { state: ["running"], timeout: WAIT_S });
  await expectThere(hosts, "shop", shop);
  await expectThere(hosts, "stall", stall);
  expect(await guests(hosts)).toHaveLength(2);
  expect((await a.client.listAllMachines()).map(({ id, host }) => [id, host])).toEqual([
    [moved, "b"],
    [late, "a"],
  ]);

  // Someone deletes all machines from etcd, while the hosts run: nobody notices.
  for (const kind of ["machines", "names", "addresses", "configs", "states"]) await hosts.etcd.clear(`/hib/${kind}/`);
  await vi.waitFor(async () => {
    const { hosts: all } = await a.cluster();
    expect(all.map(({ name, machines }) => [name, machines])).toEqual([
      ["a", 1],
      ["b", 1],
    ]);
  }, SETTLE);
  await vi.waitFor(async () => expect((await count(hosts, "a", "shop")).nonce).toBe(shop.nonce), SETTLE);
  await vi.waitFor(async () => expect((await count(hosts, "b", "stall")).nonce).toBe(stall.nonce), SETTLE);
  expect(await guests(hosts)).toHaveLength(2);
});

/** The commands of the message that decides, and which copy continues then. */
const DECISIONS = [
  { command: "machine destroy", continues: "newer" },
  { command: "cluster drop", continues: "older" },
];

testInLong.each(DECISIONS)(
  "of two copies after a backup from before an evacuation, one runs, and `$command` in the message decides",
  async (decision) => {
    await using hosts = await startHosts({ count: 2 });
    const [a, b] = [hosts.host("a"), hosts.host("b")];
    await a.client.createApp("shop");
    const id = await counter(hosts, "shop");
    const old = await count(hosts, "a", "shop");
    await a.client.suspendMachine("shop", id);
    await a.client.waitForMachine("shop", id, { state: ["suspended"], timeout: WAIT_S });
    const restore = await hosts.etcd.backup();
    await hosts.settled("a", "b");
    await a.lose();
    await hosts.settled("b");
    await b.client.evacuateHost("a");
    await vi.waitFor(() => b.client.getMachine("shop", id), SETTLE);
    const fresh = await count(hosts, "b", "shop");
    expect(fresh.nonce).not.toBe(old.nonce);

    await b.served.stop();
    await restore();
    await a.served.start();
    await b.served.start();
    await hosts.settled("a", "b");
    await vi.waitFor(
      async () => expect([await disputed(hosts, "a"), await disputed(hosts, "b")]).toEqual([0, 1]),
      SETTLE,
    );
    await vi.waitFor(async () => expect(await b.guests()).toEqual([]), SETTLE);
    expect(await count(hosts, "b", "shop")).toMatchObject({ nonce: old.nonce, count: old.count + 1 });
    expect(await guests(hosts)).toHaveLength(1);

    const status = await run(b, "cluster", "status");
    const commands = [...status.matchAll(/`hibernaut ([^`]*)`/g)].map(([, text = ""]) => text);
    const command = commands.find((text) => text.startsWith(decision.command)) ?? "";
    expect(command).toContain(id);
    await run(b, ...command.split(" "), ...(decision.continues === "older" ? ["--yes"] : []));
    await vi.waitFor(async () => expect(await disputed(hosts, "b")).toBe(0), SETTLE);
    if (decision.continues === "older") {
      expect(await count(hosts, "b", "shop")).toMatchObject({ nonce: old.nonce, count: old.count + 2 });
      expect(await b.guests()).toEqual([]);
      return;
    }
    await vi.waitFor(
      async () => expect(await count(hosts, "a", "shop")).toMatchObject({ nonce: fresh.nonce, count: fresh.count + 1 }),
      SETTLE,
    );
    expect(await a.guests()).toEqual([]);
    expect(await b.guests()).toHaveLength(1);
  },
);
