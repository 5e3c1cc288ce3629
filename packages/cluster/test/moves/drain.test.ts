/** A host is drained: its machines go where they can run, with their volumes when that is asked for. */
import { never } from "@hibernaut/lib/async";
import { afterEach, expect, test, vi } from "vitest";
import { FakeHypervisor } from "../../../hypervisor/src/fake/index.ts";
import { putToSleep, runOn } from "../../../platform/test/helpers/cluster-machines.ts";
import { type ClusterWorld, newClusterWorld, type TestHost } from "../../../platform/test/helpers/cluster-world.ts";
import { SMALL } from "../../../platform/test/helpers/fake-world.ts";
import type { HostRecord } from "../../src/keys.ts";
import { KEYS } from "../../src/keys.ts";

let world: ClusterWorld;

afterEach(async () => {
  await world.dispose();
});

const machines = ({ platform }: TestHost) => platform.machines.list("shop").map(({ record }) => record.id);
const volumes = ({ platform }: TestHost) => platform.volumes.list("shop").map(({ id }) => id);
const silent = { withVolumes: false, onProgress: () => {} };

/** Publishes what a host is, as its platform does, and waits until host a knows. */
async function publish(host: TestHost, free: number): Promise<void> {
  const identity = new FakeHypervisor(host.world.host, host.world.identity).identity();
  const hypervisor = Object.fromEntries(Object.entries(identity).map(([name, value]) => [name, String(value)]));
  const memoryMb = { total: 8192, free };
  const record: Partial<HostRecord> = { name: host.name, draining: false, region: "local", memoryMb, hypervisor };
  const revision = await world.directory.transact(
    [],
    [{ key: `${KEYS.hosts}${host.name}`, value: JSON.stringify(record) }],
  );
  await world.host("a").cluster.view.reached(revision ?? 0);
}

test("machines with volumes stay and are named, and move when that is asked for", async () => {
  world = await newClusterWorld(["a", "b"]);
  const [a, b] = [world.host("a"), world.host("b")];
  const { id } = await runOn(a, { ...SMALL, mounts: [{ volume: "data", path: "/data" }] });
  await putToSleep(a, id);
  const [volume] = volumes(a);
  const { record: plain } = await a.platform.machines.create("shop", { name: "two", config: SMALL });
  await a.platform.machines.wait("shop", plain.id, ["running"], { timeoutMs: 5000 });
  expect(await a.machines.drain.run(silent, never())).toMatchObject({
    moved: 1,
    stayed: [{ machine: { id }, reason: expect.stringMatching(/data \(.*, 1 GB, .*--with-volumes/) }],
  });
  expect([machines(a), machines(b)]).toEqual([[id], [plain.id]]);
  expect(await a.machines.drain.run({ ...silent, withVolumes: true }, never())).toEqual({ moved: 1, stayed: [] });
  expect([machines(a), volumes(a), volumes(b)]).toEqual([[], [], [volume]]);
});

test("a host whose CPU does not fit is not asked, whatever its room, and is named when there is no other", async () => {
  world = await newClusterWorld(["a", "b", "c"]);
  const [a, b, c] = [world.host("a"), world.host("b"), world.host("c")];
  const { id } = await runOn(a);
  await putToSleep(a, id);
  c.world.identity.cpu_model = "older";
  await c.restart();
  await publish(b, 256);
  await publish(c, 4096);
  const fit = vi.spyOn(c.moves.target, "fit");
  expect(await a.machines.anotherHost(id, { cold: false })).toBe("b");
  expect(await a.machines.anotherHost(id, { cold: true })).toBe("c");
  expect(await a.machines.drain.run(silent, never())).toEqual({ moved: 1, stayed: [] });
  expect([machines(b), fit.mock.calls]).toEqual([[id], []]);
  await world.directory.transact([], [{ key: `${KEYS.hosts}a`, value: null }]);
  await b.cluster.view.reached((await world.directory.list(KEYS.hosts)).revision);
  await expect(b.machines.anotherHost(id, { cold: false })).rejects.toMatchObject({
    code: "failed_precondition",
    message: expect.stringMatching(
      /on any other host: c: cpu_model_changed: CPU model was none, is older\. Add --cold/,
    ),
  });
});

test("a host that refuses a machine is followed by the next one", async () => {
  world = await newClusterWorld(["a", "b", "c"]);
  const [a, b, c] = [world.host("a"), world.host("b"), world.host("c")];
  const { id } = await runOn(a);
  await putToSleep(a, id);
  await publish(b, 256);
  await publish(c, 4096);
  c.world.images.salt = "built by another version of the tools: ";
  expect(await a.machines.drain.run(silent, never())).toEqual({ moved: 1, stayed: [] });
  expect(machines(b)).toEqual([id]);
});
