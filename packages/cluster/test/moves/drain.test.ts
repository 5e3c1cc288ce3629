/** A host is drained: its machines go where they can run, with their volumes when that is asked for. */
import { never } from "@hibernaut/lib/async";
import { expect, test, vi } from "vitest";
import { FakeHypervisor } from "../../../hypervisor/src/fake/index.ts";
import type { ClusterWorld, TestHost } from "../../../platform/test/helpers/cluster-world.ts";
import { type HostRecord, KEYS } from "../../src/keys.ts";
import { deletion, put } from "../../src/stored.ts";
import { asleep, create, fakeHosts, machines, volumes, WITH_DATA } from "../fake-hosts.ts";

/** Drains host a. */
const drain = ({ host }: ClusterWorld, { withVolumes = false } = {}) =>
  host("a").machines.drain.run({ withVolumes, onProgress: () => {} }, never());

/** Publishes what a host is, as its platform does, and waits until host a knows. */
async function publish(world: ClusterWorld, host: TestHost, free: number): Promise<void> {
  const identity = new FakeHypervisor(host.world.host, host.world.identity).identity();
  const hypervisor = Object.fromEntries(Object.entries(identity).map(([name, value]) => [name, String(value)]));
  const memoryMb = { total: 8192, free };
  const record: Partial<HostRecord> = { name: host.name, draining: false, region: "local", memoryMb, hypervisor };
  const change = put(`${KEYS.hosts}${host.name}`, record);
  await world.host("a").cluster.view.reached((await world.directory.transact([], [change])) ?? 0);
}

test("machines with volumes stay and are named, and move when that is asked for", async () => {
  const { world, a, b } = await fakeHosts("a", "b");
  const { id } = await asleep(a, WITH_DATA);
  const [volume] = volumes(a);
  const plain = await create(a, "two");
  expect(await drain(world)).toMatchObject({
    moved: 1,
    stayed: [{ machine: { id }, reason: expect.stringMatching(/data \(.*, 1 GB, .*--with-volumes/) }],
  });
  expect([machines(a), machines(b)]).toEqual([[id], [plain]]);
  expect(await drain(world, { withVolumes: true })).toEqual({ moved: 1, stayed: [] });
  expect([machines(a), volumes(a), volumes(b)]).toEqual([[], [], [volume]]);
});

test("a host whose CPU does not fit is not asked, whatever its room, and is named when there is no other", async () => {
  const { world, a, b, c } = await fakeHosts("a", "b", "c");
  const { id } = await asleep(a);
  c.world.identity.cpu_model = "older";
  await c.restart();
  await publish(world, b, 256);
  await publish(world, c, 4096);
  const fit = vi.spyOn(c.moves.target, "fit");
  expect(await a.machines.anotherHost(id, { cold: false })).toBe("b");
  expect(await a.machines.anotherHost(id, { cold: true })).toBe("c");
  expect(await drain(world)).toEqual({ moved: 1, stayed: [] });
  expect([machines(b), fit.mock.calls]).toEqual([[id], []]);
  await world.directory.transact([], [deletion(`${KEYS.hosts}a`)]);
  await b.cluster.view.reached((await world.directory.list(KEYS.hosts)).revision);
  await expect(b.machines.anotherHost(id, { cold: false })).rejects.toMatchObject({
    code: "failed_precondition",
    message: expect.stringMatching(
      /on any other host: c: cpu_model_changed: CPU model was none, is older\. Add --cold/,
    ),
  });
});

test("a host that refuses a machine is followed by the next one", async () => {
  const { world, a, b, c } = await fakeHosts("a", "b", "c");
  const { id } = await asleep(a);
  await publish(world, b, 256);
  await publish(world, c, 4096);
  c.world.images.salt = "built by another version of the tools: ";
  expect(await drain(world)).toEqual({ moved: 1, stayed: [] });
  expect(machines(b)).toEqual([id]);
});
