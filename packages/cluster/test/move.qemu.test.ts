/**
 * On real hosts: a machine moves in its sleep and awake, and a lost host's machine starts again on another one.
 *
 * @module-tag again
 */
import { expect, test, vi } from "vitest";
import { ask } from "../../platform/test/helpers/proxied.ts";
import { slowed } from "../../platform/test/helpers/slow.ts";
import { SMALL_APP } from "../../platform/test/helpers/small-app/image.ts";
import { type Hosts, startHosts } from "./hosts.ts";

const WAIT_S = slowed(120);
const counterOf = (text: string) => JSON.parse(text) as { nonce: string; count: number };

/** A machine of the counter on host a. Its memory has a nonce and a count. */
async function counter(hosts: Hosts): Promise<string> {
  const { client } = hosts.host("a");
  await client.createApp("shop");
  const services = [{ internal_port: 8080, autostop: "suspend" as const }];
  const config = { image: SMALL_APP, guest: { memory_mb: 160 }, services };
  const { id } = await client.createMachine("shop", { name: "one", host: "a", config });
  await client.waitForMachine("shop", id, { state: ["running"], timeout: WAIT_S });
  return id;
}

const requestThrough = async (hosts: Hosts, name: string) => {
  const answer = await ask({ proxyUrl: hosts.host(name).served.proxyUrl, app: "shop" });
  expect(answer.status, answer.text).toBe(200);
  return counterOf(answer.text);
};

test("a counter moves asleep and awake with its memory, and starts again elsewhere when its host is lost", async () => {
  await using hosts = await startHosts();
  const id = await counter(hosts);
  const c = hosts.host("c").client;
  const before = await requestThrough(hosts, "a");

  // Asleep, by a command that another host got.
  await c.suspendMachine("shop", id);
  await c.waitForMachine("shop", id, { state: ["suspended"], timeout: WAIT_S });
  const steps = new Set<string>();
  await expect(
    c.moveMachine("shop", id, { host: "b", onProgress: ({ step }) => void steps.add(step) }),
  ).resolves.toEqual({ host: "b" });
  expect([...steps].at(-1)).toBe("done");
  expect(await hosts.host("a").guests()).toEqual([]);
  expect(await requestThrough(hosts, "a")).toMatchObject({ nonce: before.nonce, count: before.count + 1 });

  // A fork that has never run takes the memory of the other one along, and becomes itself there.
  const [fork] = await c.forkMachine("shop", id, { skip_launch: true, skip_service_registration: true });
  const forkId = fork?.id ?? "";
  await expect(c.moveMachine("shop", forkId, { host: "c" })).resolves.toEqual({ host: "c" });
  await c.startMachine("shop", forkId);
  await c.waitForMachine("shop", forkId, { state: ["running", "failed"], timeout: WAIT_S });
  expect(await c.getMachine("shop", forkId)).toMatchObject({
    host: "c",
    origin: { machine_id: id },
    last_boot: { kind: "resume", reason: "snapshot" },
  });
  await c.destroyMachine("shop", forkId, { force: true });
  await c.waitForMachine("shop", forkId, { state: ["destroyed"], timeout: WAIT_S });

  // Awake, while a client keeps asking.
  const counts: number[] = [];
  const asking = new AbortController();
  const client = (async () => {
    while (!asking.signal.aborted) {
      const { nonce, count } = await requestThrough(hosts, "c");
      expect(nonce).toBe(before.nonce);
      counts.push(count);
    }
  })();
  await c.moveMachine("shop", id, { host: "c" });
  await vi.waitFor(async () => expect(await hosts.host("c").guests()).toHaveLength(1), slowed(20_000));
  const { count } = await requestThrough(hosts, "b");
  asking.abort();
  await client;
  expect(counts).toEqual(counts.toSorted((one, other) => one - other));
  expect(count).toBeGreaterThan(before.count + 1);
  expect(await hosts.host("b").guests()).toEqual([]);

  // Its host is lost.
  await hosts.host("c").lose();
  await hosts.settled("a", "b");
  const a = hosts.host("a").client;
  const { machines } = await a.evacuateHost("c");
  expect(machines).toMatchObject([{ machine_id: id, host: expect.stringMatching(/^[ab]$/) }]);
  await vi.waitFor(async () => a.getMachine("shop", id), slowed(20_000));
  const anew = await requestThrough(hosts, "b");
  expect(anew.nonce).not.toBe(before.nonce);
  expect((await a.getMachine("shop", id)).last_boot).toMatchObject({ kind: "cold", reason: "host_lost: c" });
  await hosts.host("c").served.start();
  await hosts.settled("a", "b", "c");
  expect(await hosts.host("c").guests()).toEqual([]);
  expect((await requestThrough(hosts, "c")).nonce).toBe(anew.nonce);
});
