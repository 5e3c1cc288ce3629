/** The memory of a machine is sent while the machine still runs: until most of it is there, nothing happens to the machine. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { ownerIn, putToSleep, runOn } from "../../../platform/test/helpers/cluster-machines.ts";
import { hostChange, type TestHost } from "../../../platform/test/helpers/cluster-world.ts";
import type { MoveOptions, MoveProgress } from "../../src/moves/source.ts";
import { put } from "../../src/stored.ts";
import { arriving, ask, fakeHosts, move, quarantined, recordOn, TIMEOUT, untilState } from "../fake-hosts.ts";

const typesOf = ({ platform }: TestHost, id: string) =>
  platform.machines.events("shop", id, 100).map(({ type }) => type);

/** A machine that runs on host a, and how to move it to host b and do something once, while its memory is sent. */
async function newRunning() {
  const { world, a, b } = await fakeHosts("a", "b");
  const { id, nonce } = await runOn(a);
  const moveWith = async (act: () => unknown, options: Partial<MoveOptions> & { signal?: AbortSignal } = {}) => {
    const steps = new Set<MoveProgress["step"]>();
    const onProgress = ({ step }: MoveProgress) => {
      if (step === "precopy" && !steps.has(step)) act();
      steps.add(step);
    };
    await move(a, { ...options, id, to: "b", onProgress });
    return [...steps];
  };
  return { world, a, b, id, nonce, moveWith };
}

test("what the guest does meanwhile is in its memory on the other host", async () => {
  const { a, b, id, nonce, moveWith } = await newRunning();
  const seen: (number | undefined)[] = [];
  await moveWith(() => seen.push(ask(a, id)?.count));
  await untilState(b, id, "running");
  expect(ask(b, id)).toMatchObject({ nonce, count: (seen[0] ?? 0) + 1 });
});

test("a machine whose move is called off meanwhile was never suspended, and nothing is left on the other host", async () => {
  const { world, a, b, id, nonce, moveWith } = await newRunning();
  const off = new AbortController();
  const moved = moveWith(() => off.abort(new Error("Ctrl-C")), { signal: off.signal });
  await expect(moved).rejects.toThrow("Ctrl-C");
  expect(typesOf(a, id)).not.toContain("suspend");
  expect(ask(a, id)?.nonce).toBe(nonce);
  await vi.waitFor(async () => expect(await arriving(b)).toEqual([]), TIMEOUT.timeoutMs);
  expect(await ownerIn(world, id)).toMatchObject({ host: "a", epoch: 1 });
});

test("a machine whose new host goes away meanwhile was never suspended", async () => {
  const { a, b, id, nonce, moveWith } = await newRunning();
  await expect(moveWith(() => void b.stop())).rejects.toMatchObject({ code: "host_unreachable" });
  expect(typesOf(a, id)).not.toContain("suspend");
  expect(ask(a, id)?.nonce).toBe(nonce);
});

test("a sleeping machine that is woken meanwhile runs on the other host", async () => {
  const { world, a, b, id, nonce, moveWith } = await newRunning();
  await putToSleep(a, id);
  await moveWith(() => a.platform.machines.start("shop", id, { by: "proxy" }));
  await untilState(b, id, "running");
  expect(ask(b, id)?.nonce).toBe(nonce);
  expect(world.mostPerMachine).toBe(1);
});

test("a machine that gets an image meanwhile that the other host has built differently stays", async () => {
  const { world, a, b, id, moveWith } = await newRunning();
  const { config, imageDigest } = recordOn(a, id);
  b.world.images.fingerprint = async (digest) => (digest === imageDigest ? digest : `another ${digest}`);
  let updated: Promise<unknown> | undefined;
  const update = () => (updated = a.platform.machines.update("shop", id, { ...config, image: "oci:/other" }));
  await expect(moveWith(update)).rejects.toMatchObject({ code: "failed_precondition" });
  await updated;
  expect(await ownerIn(world, id)).toMatchObject({ host: "a", epoch: 1 });
  await untilState(a, id, "running");
});

test("a host that begins to drain meanwhile does not get the machine", async () => {
  const { world, a, id, nonce, moveWith } = await newRunning();
  const begin = async () => {
    const { key, value } = hostChange("b", true);
    const record = { ...(JSON.parse(value ?? "{}") as Record<string, unknown>), draining: true };
    await world.directory.transact([], [put(key, record)]);
    await vi.waitFor(() => expect(a.cluster.view.host("b")?.up?.draining).toBe(true), TIMEOUT.timeoutMs);
  };
  const held = Promise.withResolvers<void>();
  a.world.host.hold.capture = held.promise;
  const moved = moveWith(() => void begin().then(held.resolve, held.reject));
  await expect(moved).rejects.toMatchObject({
    code: "failed_precondition",
    message: expect.stringContaining("draining"),
  });
  await untilState(a, id, "running");
  expect(ask(a, id)?.nonce).toBe(nonce);
});

test("a second move of the machine is refused at once", async () => {
  const { a, b, id, moveWith } = await newRunning();
  let second: Promise<unknown> | undefined;
  await moveWith(() => (second = moveWith(() => {}).catch((error: unknown) => error)));
  expect(await second).toMatchObject({ code: "aborted", message: expect.stringContaining("being moved to host b") });
  await untilState(b, id, "running");
  expect(await quarantined(a)).toEqual([]);
});

test("a machine that is moved without its memory sends none of it", async () => {
  const { b, id, nonce, moveWith } = await newRunning();
  const steps = await moveWith(() => {}, { cold: true });
  expect(steps).not.toContain("precopy");
  await untilState(b, id, "running");
  expect(ask(b, id)?.nonce).not.toBe(nonce);
});

test("memory whose host was killed meanwhile is deleted at the next start", async () => {
  const { b } = await fakeHosts("a", "b");
  const left = join(b.world.folder, "incoming", "ahead-01ARZ3NDEKTSV4RRFFQ69G5FAV");
  await mkdir(left, { recursive: true });
  await writeFile(join(left, "memory"), "half of it");
  await b.restart();
  await vi.waitFor(async () => expect(await arriving(b)).toEqual([]), TIMEOUT.timeoutMs);
});
