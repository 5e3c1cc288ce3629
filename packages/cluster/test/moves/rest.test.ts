/** Machines are at rest before they are copied, whatever happens to them on the way there. */
import { never } from "@hibernaut/lib/async";
import { afterEach, expect, test, vi } from "vitest";
import { ownerIn, putToSleep, runOn } from "../../../platform/test/helpers/cluster-machines.ts";
import { type ClusterWorld, newClusterWorld, type TestHost } from "../../../platform/test/helpers/cluster-world.ts";
import { SMALL } from "../../../platform/test/helpers/fake-world.ts";
import { FRAMES, frame } from "../../src/moves/frames.ts";
import { announce } from "../../src/moves/intent.ts";
import { pack } from "../../src/moves/pack.ts";
import type { MoveProgress } from "../../src/moves/source.ts";

const TIMEOUT = { timeoutMs: 5000 };
let world: ClusterWorld;

afterEach(async () => {
  await world.dispose();
});

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
  world = await newClusterWorld(["a", "b"]);
  const [a, b] = [world.host("a"), world.host("b")];
  const requests = Promise.withResolvers<void>();
  const finishRequests = vi.fn<() => Promise<void>>(() => requests.promise);
  await a.restart({ wrap: (deps) => ({ ...deps, holdBack: () => () => {}, finishRequests }) });
  const { id } = await runOn(a);
  const copied = guestsAtCopy(a, id);
  const moved = a.moves.source.move(id, { to: "b", cold: false, onProgress: copied.onProgress }, never());
  await vi.waitFor(() => expect(finishRequests).toHaveBeenCalled(), 5000);
  const boot = Promise.withResolvers<void>();
  a.world.host.hold = { boot: boot.promise };
  await a.platform.custody.fence(id);
  await vi.waitFor(() => expect(a.platform.machines.get("shop", id).record.state).toBe("starting"), 5000);
  requests.resolve();
  boot.resolve();
  await moved;
  expect(copied.guests).toBe(0);
  await b.platform.machines.wait("shop", id, ["running"], TIMEOUT);
  expect(b.world.host.guest(id)?.request()).toBeDefined();
  expect(world.mostPerMachine).toBe(1);
});

test("a machine whose guest dies while it is suspended for its move starts from scratch on the other host", async () => {
  world = await newClusterWorld(["a", "b"]);
  const [a, b] = [world.host("a"), world.host("b")];
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
  const moved = a.moves.source.move(id, { to: "b", cold: false, onProgress: copied.onProgress }, never());
  await capturing.promise;
  await a.platform.custody.fence(id);
  a.world.host.hold = {};
  capture.reject(new Error("QEMU is gone"));
  await moved;
  expect(copied.guests).toBe(0);
  await b.platform.machines.wait("shop", id, ["running"], TIMEOUT);
  expect(b.world.host.guest(id)?.request()).toBeDefined();
  expect(world.mostPerMachine).toBe(1);
});

test("a machine whose app ends by itself while its open requests end stays stopped on the other host", async () => {
  world = await newClusterWorld(["a", "b"]);
  const [a, b] = [world.host("a"), world.host("b")];
  const requests = Promise.withResolvers<void>();
  const finishRequests = vi.fn<() => Promise<void>>(() => requests.promise);
  await a.restart({ wrap: (deps) => ({ ...deps, holdBack: () => () => {}, finishRequests }) });
  const { id } = await runOn(a, { ...SMALL, restart: { policy: "no" } });
  const moved = a.moves.source.move(id, { to: "b", cold: false }, never());
  await vi.waitFor(() => expect(finishRequests).toHaveBeenCalled(), 5000);
  a.world.host.guest(id)?.exit(0);
  await a.platform.machines.wait("shop", id, ["stopped"], TIMEOUT);
  requests.resolve();
  await moved;
  // What asked for it would have started it by now.
  expect(b.platform.machines.get("shop", id).record.state).toBe("stopped");
});

test("a machine that is moved without its memory finishes its open requests once", async () => {
  world = await newClusterWorld(["a", "b"]);
  const a = world.host("a");
  const finishRequests = vi.fn<() => Promise<void>>(() => Promise.resolve());
  await a.restart({ wrap: (deps) => ({ ...deps, holdBack: () => () => {}, finishRequests }) });
  const { id } = await runOn(a);
  await a.moves.source.move(id, { to: "b", cold: true }, never());
  expect(finishRequests).toHaveBeenCalledTimes(1);
  expect(await ownerIn(world, id)).toMatchObject({ host: "b" });
});

test.each(["running", "starting", "restarting"] as const)(
  "a machine that was sent while it was %s is not taken in",
  async (state) => {
    world = await newClusterWorld(["a", "b"]);
    const [a, b] = [world.host("a"), world.host("b")];
    const { id } = await runOn(a);
    await putToSleep(a, id);
    const record = { ...a.platform.machines.get("shop", id).record, state };
    const intent = { from: "a", to: "b", attempt: "one", startedAt: new Date().toISOString() };
    const papers = { record, taken: null, from: "a", epoch: 1, attempt: "one", history: [], volumes: [] };
    await announce(id, intent, world.directory);
    async function* stream() {
      yield frame(FRAMES.papers, Buffer.from(JSON.stringify(papers)));
      const signal = never();
      for await (const piece of pack([], { signal, onBytes: () => {} })) yield frame(FRAMES.data, piece);
      yield frame(FRAMES.end, Buffer.from(JSON.stringify({ files: 0 })));
    }
    await expect(b.moves.target.receive(id, stream(), never())).rejects.toMatchObject({
      code: "failed_precondition",
      message: expect.stringContaining(`sent while it was ${state}, and stays on host a`),
    });
    expect(await ownerIn(world, id)).toMatchObject({ host: "a", epoch: 1 });
    expect(b.platform.machines.list("shop")).toEqual([]);
  },
);
