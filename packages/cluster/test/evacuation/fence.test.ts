/** A lost host ends its machines that others may recreate: also those that it is just starting, or knows better than they. */
import { afterEach, expect, test, vi } from "vitest";
import { ownerIn, runOn } from "../../../platform/test/helpers/cluster-machines.ts";
import { type ClusterWorld, newClusterWorld } from "../../../platform/test/helpers/cluster-world.ts";
import { SMALL } from "../../../platform/test/helpers/fake-world.ts";
import { KEYS } from "../../src/keys.ts";
import { filesOf } from "../../src/moves/pack.ts";
import { claim } from "../../src/ownership/claims.ts";

let world: ClusterWorld | undefined;

afterEach(async () => {
  await world?.dispose();
  world = undefined;
});

test("a machine whose guest is being booted when the lease is lost does not run", async () => {
  world = await newClusterWorld(["a"]);
  const a = world.host("a");
  await a.platform.machines.create("shop", { name: "warm-up", config: SMALL, skipLaunch: true });
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  a.world.host.hold.boot = held;
  const { record } = await a.platform.machines.create("shop", {
    name: "one",
    config: { ...SMALL, on_host_loss: "recreate" },
  });
  await vi.waitFor(() => expect(a.world.host.of(record.id)).toHaveLength(1), 5000);
  a.lease.set("lost");
  release();
  await vi.waitFor(() => expect(a.platform.machines.get("shop", record.id).record.state).not.toBe("starting"), 5000);
  expect(a.platform.machines.get("shop", record.id).record.state).not.toBe("running");
  expect(a.world.host.of(record.id)).toEqual([]);
});

test("a machine that others may recreate as far as they know ends, whatever was changed here since", async () => {
  world = await newClusterWorld(["a", "b"]);
  const b = world.host("b");
  const { id } = await runOn(b, { ...SMALL, on_host_loss: "recreate" });
  b.cut(true);
  await b.platform.machines.update("shop", id, SMALL);
  await b.platform.machines.wait("shop", id, ["running"], { timeoutMs: 5000 });
  b.lease.set("lost");
  await vi.waitFor(() => expect(b.world.host.of(id)).toEqual([]), 5000);
});

test("files that cannot be listed are not an empty machine, and those that were never made are", async () => {
  await expect(filesOf("/etc/hostname", { snapshot: null })).rejects.toThrow("ENOTDIR");
  expect(await filesOf("/nowhere/at/all", { snapshot: null })).toEqual({ paths: [], bytes: 0 });
});

test("a claim does not try the same taken address forever", async () => {
  world = await newClusterWorld(["a"]);
  const { id } = await runOn(world.host("a"));
  const record = world.host("a").platform.machines.get("shop", id).record;
  const { address } = (await ownerIn(world, id)) ?? { address: "" };
  expect((await world.directory.get(`${KEYS.addresses}${address}`))?.value).toBe(JSON.stringify(id));
  let tries = 0;
  const same = () => {
    tries += 1;
    if (tries > 100) throw new Error("it does not end");
    return address;
  };
  const other = { ...record, id: "00000000000000", name: "other" };
  await expect(claim(other, same, { directory: world.directory, host: "a" })).rejects.toMatchObject({
    code: "aborted",
  });
  expect(tries).toBe(10);
});
