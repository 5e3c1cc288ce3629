/** Disks that fail while a machine arrives: the copy that is whole stays. */
import { join } from "node:path";
import { never } from "@hibernaut/lib/async";
import { afterEach, expect, test, vi } from "vitest";
import { ownerIn, putToSleep, runOn } from "../../../platform/test/helpers/cluster-machines.ts";
import { type ClusterWorld, newClusterWorld } from "../../../platform/test/helpers/cluster-world.ts";
import { FRAMES, frame } from "../../src/moves/frames.ts";
import { announce } from "../../src/moves/intent.ts";
import { filesOf, pack } from "../../src/moves/pack.ts";

/** Called before each file that arrives is flushed; what it throws is what the disk says. */
const disk = vi.hoisted(() => ({ beforeFlush: (_path: string): void => {} }));

vi.mock(import("@hibernaut/lib/durable"), async (original) => {
  const actual = await original();
  const flush = async (path: string) => {
    if (path.includes("/incoming/")) disk.beforeFlush(path);
    await actual.flush(path);
  };
  return { ...actual, flush };
});

let world: ClusterWorld;

afterEach(async () => {
  disk.beforeFlush = () => {};
  await world.dispose();
});

/** Sends a sleeping machine to b, whose flush of an arrived file fails once with this code before the rest is sent. */
async function receiveWith(code: string): Promise<{ id: string; received: Promise<void> }> {
  world = await newClusterWorld(["a", "b"]);
  const [a, b] = [world.host("a"), world.host("b")];
  const { id } = await runOn(a);
  await putToSleep(a, id);
  const { record } = a.platform.machines.get("shop", id);
  const papers = { record, taken: null, from: "a", epoch: 1, attempt: "one", history: [], volumes: [] };
  await announce(id, { from: "a", to: "b", attempt: "one", startedAt: new Date().toISOString() }, world.directory);
  const failed = Promise.withResolvers<void>();
  let failures = 0;
  disk.beforeFlush = () => {
    if (failures > 0) return;
    failures += 1;
    failed.resolve();
    throw Object.assign(new Error(`${code}: fsync`), { code });
  };
  const folder = join(a.world.folder, "machines", id);
  const { paths } = await filesOf(folder, record);
  async function* stream() {
    yield frame(FRAMES.papers, Buffer.from(JSON.stringify(papers)));
    const signal = never();
    for await (const piece of pack([{ folder, paths }], { signal, onBytes: () => {} })) yield frame(FRAMES.data, piece);
    await failed.promise;
    yield frame(FRAMES.end, Buffer.from(JSON.stringify({ files: paths.length })));
  }
  return { id, received: b.moves.target.receive(id, stream(), never()) };
}

test("a write error that the kernel tells only once, during the copy, keeps the machine where it was", async () => {
  const { id, received } = await receiveWith("EIO");
  await expect(received).rejects.toThrow("EIO: fsync");
  expect(await ownerIn(world, id)).toMatchObject({ host: "a", epoch: 1 });
  expect(world.host("b").platform.machines.list("shop")).toEqual([]);
});

test("a file that is gone again when it is flushed during the copy does not end the move", async () => {
  const { id, received } = await receiveWith("ENOENT");
  await received;
  expect(await ownerIn(world, id)).toMatchObject({ host: "b", epoch: 2 });
});
