/** Machines are at rest before they are copied, whatever happens to them on the way there. */
import { expect, test, vi } from "vitest";
import { ownerIn, runOn } from "../../../platform/test/helpers/cluster-machines.ts";
import type { TestHost } from "../../../platform/test/helpers/cluster-world.ts";
import { SMALL } from "../../../platform/test/helpers/fake-world.ts";
import type { MoveProgress } from "../../src/moves/source.ts";
import { ask, asleep, fakeHosts, machines, move, recordOn, sendByHand, untilState } from "../fake-hosts.ts";

/** Hosts of which a has open requests, until they are let end. */
async function withRequests() {
  const { world, a, b } = await fakeHosts("a", "b");
  const requests = Promise.withResolvers<void>();
  const finishRequests = vi.fn<() => Promise<void>>(() => requests.promise);
  await a.restart({ wrap: (deps) => ({ ...deps, holdBack: () => () => {}, finishRequests }) });
  return { world, a, b, finishRequests, endRequests: requests.resolve };
}

/** Counts the machine's guests on the host in the moment in which its files begin to be copied. */
function guestsAtCopy({ world: { host } }: TestHost, id: string) {
  const copied: { guests?: number; onProgress(progress: MoveProgress): void } = {
    onProgress({ step }) {
      if (step === "copy") copied.guests ??= host.of(id).length;
    },
  };
  return copied;
}

test("a machine whose guest crashes while its open requests end is moved once it has started again and rests", async () => {
  const { world, a, b, finishRequests, endRequests } = await withRequests();
  const { id } = await runOn(a);
  const copied = guestsAtCopy(a, id);
  const moved = move(a, { id, to: "b", onProgress: copied.onProgress });
  await vi.waitFor(() => expect(finishRequests).toHaveBeenCalled(), 5000);
  const boot = Promise.withResolvers<void>();
  a.world.host.hold = { boot: boot.promise };
  await a.platform.custody.fence(id);
  await vi.waitFor(() => expect(recordOn(a, id).state).toBe("starting"), 5000);
  endRequests();
  boot.resolve();
  await moved;
  expect(copied.guests).toBe(0);
  await untilState(b, id, "running");
  expect(ask(b, id)).toBeDefined();
  expect(world.mostPerMachine).toBe(1);
});

test("a machine whose guest dies while it is suspended for its move starts from scratch on the other host", async () => {
  const { world, a, b } = await fakeHosts("a", "b");
  const { id } = await runOn(a);
  const capture = Promise.withResolvers<void>();
  const capturing = Promise.withResolvers<void>();
  a.world.host.hold = {
    get capture() {
      capturing.resolve();
      return capture.promise;
    },
  };
  const copied = guestsAtCopy(a, id);
  const moved = move(a, { id, to: "b", onProgress: copied.onProgress });
  await capturing.promise;
  await a.platform.custody.fence(id);
  a.world.host.hold = {};
  capture.reject(new Error("QEMU is gone"));
  await moved;
  expect(copied.guests).toBe(0);
  await untilState(b, id, "running");
  expect(ask(b, id)).toBeDefined();
  expect(world.mostPerMachine).toBe(1);
});

test("a machine whose app ends by itself while its open requests end stays stopped on the other host", async () => {
  const { a, b, finishRequests, endRequests } = await withRequests();
  const { id } = await runOn(a, { ...SMALL, restart: { policy: "no" } });
  const moved = move(a, { id, to: "b" });
  await vi.waitFor(() => expect(finishRequests).toHaveBeenCalled(), 5000);
  a.world.host.guest(id)?.exit(0);
  await untilState(a, id, "stopped");
  endRequests();
  await moved;
  // What asked for it would have started it by now.
  expect(recordOn(b, id).state).toBe("stopped");
});

test("a machine that is moved without its memory finishes its open requests once", async () => {
  const { world, a, finishRequests, endRequests } = await withRequests();
  endRequests();
  const { id } = await runOn(a);
  await move(a, { id, to: "b", cold: true });
  expect(finishRequests).toHaveBeenCalledTimes(1);
  expect(await ownerIn(world, id)).toMatchObject({ host: "b" });
});

test.each(["running", "starting", "restarting"] as const)(
  "a machine that was sent while it was %s is not taken in",
  async (state) => {
    const { world, a, b } = await fakeHosts("a", "b");
    const { id } = await asleep(a);
    await expect(sendByHand(world, id, { state })).rejects.toMatchObject({
      code: "failed_precondition",
      message: expect.stringContaining(`sent while it was ${state}, and stays on host a`),
    });
    expect(await ownerIn(world, id)).toMatchObject({ host: "a", epoch: 1 });
    expect(machines(b)).toEqual([]);
  },
);
