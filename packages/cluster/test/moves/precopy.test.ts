/** The memory of a machine is sent while the machine still runs: until most of it is there, nothing happens to the machine. */
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { never } from "@hibernaut/lib/async";
import { afterEach, expect, test, vi } from "vitest";
import { ownerIn, putToSleep, runOn } from "../../../platform/test/helpers/cluster-machines.ts";
import {
  type ClusterWorld,
  hostChange,
  newClusterWorld,
  type TestHost,
} from "../../../platform/test/helpers/cluster-world.ts";
import type { MoveOptions, MoveProgress } from "../../src/moves/source.ts";

const TIMEOUT = { timeoutMs: 5000 };
let world: ClusterWorld;

afterEach(async () => {
  await world.dispose();
});

/** Moves a machine to host b, and does something once, while its memory is sent. */
async function moveWith(
  id: string,
  act: () => unknown,
  { signal = never(), ...options }: Partial<MoveOptions> & { signal?: AbortSignal } = {},
): Promise<MoveProgress["step"][]> {
  const steps = new Set<MoveProgress["step"]>();
  const onProgress = ({ step }: MoveProgress) => {
    if (step === "precopy" && !steps.has(step)) act();
    steps.add(step);
  };
  await world.host("a").moves.source.move(id, { to: "b", cold: false, ...options, onProgress }, signal);
  return [...steps];
}

const arriving = ({ world: { folder } }: TestHost) => readdir(join(folder, "incoming")).catch(() => []);
const typesOf = ({ platform }: TestHost, id: string) =>
  platform.machines.events("shop", id, 100).map(({ type }) => type);

async function newRunning() {
  world = await newClusterWorld(["a", "b"]);
  const [a, b] = [world.host("a"), world.host("b")];
  return { a, b, ...(await runOn(a)) };
}

test("what the guest does meanwhile is in its memory on the other host", async () => {
  const { a, b, id, nonce } = await newRunning();
  const seen: (number | undefined)[] = [];
  await moveWith(id, () => seen.push(a.world.host.guest(id)?.request()?.count));
  await b.platform.machines.wait("shop", id, ["running"], TIMEOUT);
  expect(b.world.host.guest(id)?.request()).toMatchObject({ nonce, count: (seen[0] ?? 0) + 1 });
});

test("a machine whose move is called off meanwhile was never suspended, and nothing is left on the other host", async () => {
  const { a, b, id, nonce } = await newRunning();
  const off = new AbortController();
  const moved = moveWith(id, () => off.abort(new Error("Ctrl-C")), { signal: off.signal });
  await expect(moved).rejects.toThrow("Ctrl-C");
  expect(typesOf(a, id)).not.toContain("suspend");
  expect(a.world.host.guest(id)?.request()?.nonce).toBe(nonce);
  await vi.waitFor(async () => expect(await arriving(b)).toEqual([]), TIMEOUT.timeoutMs);
  expect(await ownerIn(world, id)).toMatchObject({ host: "a", epoch: 1 });
});

test("a machine whose new host goes away meanwhile was never suspended", async () => {
  const { a, b, id, nonce } = await newRunning();
  await expect(moveWith(id, () => void b.stop())).rejects.toMatchObject({ code: "host_unreachable" });
  expect(typesOf(a, id)).not.toContain("suspend");
  expect(a.world.host.guest(id)?.request()?.nonce).toBe(nonce);
});

test("a sleeping machine that is woken meanwhile runs on the other host", async () => {
  const { a, b, id, nonce } = await newRunning();
  await putToSleep(a, id);
  await moveWith(id, () => a.platform.machines.start("shop", id, { by: "proxy" }));
  await b.platform.machines.wait("shop", id, ["running"], TIMEOUT);
  expect(b.world.host.guest(id)?.request()?.nonce).toBe(nonce);
  expect(world.mostPerMachine).toBe(1);
});

test("a machine whose new host goes away once its memory is there runs on", async () => {
  const { a, b, id, nonce } = await newRunning();
  const onProgress = ({ step }: MoveProgress) => {
    if (step === "suspend") void b.stop();
  };
  const moved = a.moves.source.move(id, { to: "b", cold: false, onProgress }, never());
  await expect(moved).rejects.toMatchObject({ code: "host_unreachable" });
  await a.platform.machines.wait("shop", id, ["running"], TIMEOUT);
  expect(a.world.host.guest(id)?.request()?.nonce).toBe(nonce);
});

test("a machine that gets an image meanwhile that the other host has built differently stays", async () => {
  const { a, b, id } = await newRunning();
  const { config, imageDigest } = a.platform.machines.get("shop", id).record;
  b.world.images.fingerprint = async (digest) => (digest === imageDigest ? digest : `another ${digest}`);
  let updated: Promise<unknown> | undefined;
  const update = () => (updated = a.platform.machines.update("shop", id, { ...config, image: "oci:/other" }));
  await expect(moveWith(id, update)).rejects.toMatchObject({ code: "failed_precondition" });
  await updated;
  expect(await ownerIn(world, id)).toMatchObject({ host: "a", epoch: 1 });
  await a.platform.machines.wait("shop", id, ["running"], TIMEOUT);
});

test("a host that begins to drain meanwhile does not get the machine", async () => {
  const { a, id, nonce } = await newRunning();
  const begin = async () => {
    const { key, value } = hostChange("b", true);
    const record = { ...(JSON.parse(value ?? "{}") as Record<string, unknown>), draining: true };
    await world.directory.transact([], [{ key, value: JSON.stringify(record) }]);
    await vi.waitFor(() => expect(a.cluster.view.host("b")?.up?.draining).toBe(true), TIMEOUT.timeoutMs);
  };
  const held = Promise.withResolvers<void>();
  a.world.host.hold.capture = held.promise;
  const moved = moveWith(id, () => void begin().then(held.resolve, held.reject));
  await expect(moved).rejects.toMatchObject({
    code: "failed_precondition",
    message: expect.stringContaining("draining"),
  });
  await a.platform.machines.wait("shop", id, ["running"], TIMEOUT);
  expect(a.world.host.guest(id)?.request()?.nonce).toBe(nonce);
});

test("a second move of the machine is refused at once", async () => {
  const { a, b, id } = await newRunning();
  let second: Promise<unknown> | undefined;
  await moveWith(id, () => (second = moveWith(id, () => {}).catch((error: unknown) => error)));
  expect(await second).toMatchObject({ code: "aborted", message: expect.stringContaining("being moved to host b") });
  await b.platform.machines.wait("shop", id, ["running"], TIMEOUT);
  expect(await readdir(join(a.world.folder, "quarantine")).catch(() => [])).toEqual([]);
});

test("a machine that is moved without its memory sends none of it", async () => {
  const { b, id, nonce } = await newRunning();
  const steps = await moveWith(id, () => {}, { cold: true });
  expect(steps).not.toContain("precopy");
  await b.platform.machines.wait("shop", id, ["running"], TIMEOUT);
  expect(b.world.host.guest(id)?.request()?.nonce).not.toBe(nonce);
});

test("memory whose host was killed meanwhile is deleted at the next start", async () => {
  world = await newClusterWorld(["a", "b"]);
  const b = world.host("b");
  const left = join(b.world.folder, "incoming", "ahead-01ARZ3NDEKTSV4RRFFQ69G5FAV");
  await mkdir(left, { recursive: true });
  await writeFile(join(left, "memory"), "half of it");
  await b.restart();
  await vi.waitFor(async () => expect(await arriving(b)).toEqual([]), TIMEOUT.timeoutMs);
});
