/** A lost host ends its machines that others may recreate: also those that it is just starting, or knows better than they. */
import { expect, test, vi } from "vitest";
import { ownerIn, runOn } from "../../../platform/test/helpers/cluster-machines.ts";
import { SMALL } from "../../../platform/test/helpers/fake-world.ts";
import { filesOf } from "../../src/moves/pack.ts";
import { claim } from "../../src/ownership/claims.ts";
import { fakeHosts, RECREATE, recordOn, stateOn, untilState } from "../fake-hosts.ts";

test("a machine whose guest is being booted when the lease is lost does not run", async () => {
  const { a } = await fakeHosts("a");
  await a.platform.machines.create("shop", { name: "warm-up", config: SMALL, skipLaunch: true });
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  a.world.host.hold.boot = held;
  const { record } = await a.platform.machines.create("shop", { name: "one", config: RECREATE });
  await vi.waitFor(() => expect(a.world.host.of(record.id)).toHaveLength(1), 5000);
  a.lease.set("lost");
  release();
  await vi.waitFor(() => expect(stateOn(a, record.id)).not.toBe("starting"), 5000);
  expect(stateOn(a, record.id)).not.toBe("running");
  expect(a.world.host.of(record.id)).toEqual([]);
});

test("a machine that others may recreate as far as they know ends, whatever was changed here since", async () => {
  const { b } = await fakeHosts("a", "b");
  const { id } = await runOn(b, RECREATE);
  b.cut(true);
  await b.platform.machines.update("shop", id, SMALL);
  await untilState(b, id, "running");
  b.lease.set("lost");
  await vi.waitFor(() => expect(b.world.host.of(id)).toEqual([]), 5000);
});

test("files that cannot be listed are not an empty machine, and those that were never made are", async () => {
  await expect(filesOf("/etc/hostname", { snapshot: null })).rejects.toThrow("ENOTDIR");
  expect(await filesOf("/nowhere/at/all", { snapshot: null })).toEqual({ paths: [], bytes: 0 });
});

test("a claim does not try the same taken address forever", async () => {
  const { world, a } = await fakeHosts("a");
  const { id } = await runOn(a);
  const { address = "" } = (await ownerIn(world, id)) ?? {};
  const another = vi.fn<() => string>(() => address);
  const other = { ...recordOn(a, id), id: "00000000000000", name: "other" };
  const claiming = claim(other, another, { directory: world.directory, host: "a" });
  await expect(claiming).rejects.toMatchObject({ code: "aborted" });
  expect(another).toHaveBeenCalledTimes(10);
});
