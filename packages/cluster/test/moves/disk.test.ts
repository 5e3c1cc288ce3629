/** Disks that fail while a machine arrives: the copy that is whole stays. */
import { expect, test, vi } from "vitest";
import { ownerIn } from "../../../platform/test/helpers/cluster-machines.ts";
import { asleep, fakeHosts, machines, sendByHand } from "../fake-hosts.ts";

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

/** Sends a sleeping machine to b, whose flush of an arrived file fails once with this code before the rest is sent. */
async function receiveWith(code: string) {
  const { world, a, b } = await fakeHosts("a", "b");
  const { id } = await asleep(a);
  const failed = Promise.withResolvers<void>();
  disk.beforeFlush = () => {
    disk.beforeFlush = () => {};
    failed.resolve();
    throw Object.assign(new Error(`${code}: fsync`), { code });
  };
  return { world, b, id, received: sendByHand(world, id, { beforeEnd: failed.promise }) };
}

test("a write error that the kernel tells only once, during the copy, keeps the machine where it was", async () => {
  const { world, b, id, received } = await receiveWith("EIO");
  await expect(received).rejects.toThrow("EIO: fsync");
  expect(await ownerIn(world, id)).toMatchObject({ host: "a", epoch: 1 });
  expect(machines(b)).toEqual([]);
});

test("a file that is gone again when it is flushed during the copy does not end the move", async () => {
  const { world, id, received } = await receiveWith("ENOENT");
  await received;
  expect(await ownerIn(world, id)).toMatchObject({ host: "b", epoch: 2 });
});
