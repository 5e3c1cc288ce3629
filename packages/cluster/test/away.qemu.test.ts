/**
 * One cluster to look at: what any host shows of the others, also of one that is lost. Real platforms and machines.
 *
 * @module-tag again
 */
import type { StreamEntry, StreamEvent } from "@hibernaut/client";
import { expect, onTestFinished, test, vi } from "vitest";
import { slowed } from "../../platform/test/helpers/slow.ts";
import { SMALL_APP } from "../../platform/test/helpers/small-app/image.ts";
import { startHosts } from "./hosts.ts";

const APP = "shop";
/** Only a fault reaches it. */
const SETTLE_MS = slowed(60_000);

test(
  "a host tells what happens on another one, and shows its machines also while it is lost",
  async () => {
    await using hosts = await startHosts({ count: 2 });
    const [a, b] = [hosts.host("a"), hosts.host("b")];
    await a.client.createApp(APP);
    const heard: StreamEntry[] = [];
    const end = new AbortController();
    onTestFinished(() => end.abort());
    const connected = Promise.withResolvers<void>();
    const reading = (async () => {
      const events = a.client.followEvents({ app: APP, signal: end.signal, onConnected: () => connected.resolve() });
      for await (const one of events) heard.push(one);
    })().catch(() => {}); // the test ends it
    await connected.promise;

    const config = { image: SMALL_APP, guest: { memory_mb: 128 }, init: { cmd: ["--label", "b"] } };
    const { id } = await a.client.createMachine(APP, { host: "b", name: "web", config });
    await a.client.waitForMachine(APP, id, { state: "running", timeout: SETTLE_MS / 1000 });
    await a.client.suspendMachine(APP, id);
    await a.client.waitForMachine(APP, id, { state: "suspended", timeout: SETTLE_MS / 1000 });
    const types = () => heard.filter((one): one is StreamEvent => "sequence" in one).map(({ type }) => type);
    await vi.waitFor(() => expect(types()).toContain("machine.suspended"), { timeout: SETTLE_MS });
    expect(heard.find(({ type }) => type === "machine.suspended")).toMatchObject({ host: "b", machine_id: id });
    const listed = async () => (await a.client.listMachines(APP)).map(({ host_state: host, state }) => [host, state]);
    // What other hosts know follows within some milliseconds.
    await vi.waitFor(async () => expect(await b.client.listMachines(APP)).toHaveLength(1));
    expect(await listed()).toEqual([["up", "suspended"]]);

    await b.lose();
    await vi.waitFor(async () => expect(await listed()).toEqual([["unreachable", "suspended"]]), {
      timeout: SETTLE_MS,
    });
    expect(heard.at(-1)).toEqual({ type: "missing", hosts: ["b"] });
    await expect(a.client.getMachine(APP, id)).rejects.toMatchObject({ code: "host_unreachable" });

    await b.served.start();
    await vi.waitFor(async () => expect(await listed()).toEqual([["up", "suspended"]]), { timeout: SETTLE_MS });
    await vi.waitFor(() => expect(heard.at(-1)).toEqual({ type: "missing", hosts: [] }), { timeout: SETTLE_MS });
    await a.client.startMachine(APP, id);
    await vi.waitFor(() => expect(types().at(-1)).toBe("machine.running"), { timeout: SETTLE_MS });
    end.abort();
    await reading;
  },
  slowed(240_000),
);
