/** What users do with a machine, on real QEMU and on each network. The long ones share one machine. */
import { chmod, open, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { readSeal, writeSeal } from "../../../snapshots/src/seal.ts";
import { longOr } from "../helpers/long.ts";
import { ask, askUntilAnswered } from "../helpers/qemu-world.ts";
import { Place } from "../helpers/served.ts";
import { SMALL_APP } from "../helpers/small-app/image.ts";

/** Waits until the machine's snapshot is sealed, and lets the seal be of an earlier boot of the host. Returns its directory. */
async function sealFromAnotherBoot(place: Place, id: string): Promise<string> {
  const snapshots = join(place.dataDir, "machines", id, "snapshots");
  const generation = join(snapshots, ...(await readdir(snapshots)));
  const path = join(generation, "seal.json");
  const seal = await vi.waitUntil(() => readSeal(path), { timeout: 10_000 });
  await writeSeal(path, { ...seal, file: { ...seal.file, boot_id: "an earlier one" } });
  return generation;
}

/** The rest of the platform must not notice how machines are connected. The bridge needs root. */
const BRIDGED = process.getuid?.() === 0 && process.env["HIBERNAUT_NETWORK"] !== "user";
const NETWORKS = BRIDGED ? longOr(["bridge", "user"], ["bridge"]) : ["user"];

describe.each(NETWORKS)("on the %s network", (network) => {
  const place = Place.forTests({ HIBERNAUT_NETWORK: network });
  let id: string;
  let address: string;
  beforeAll(async () => {
    ({ machine_id: id, private_address: address } = await place.machine());
  });

  test("a start while suspending cancels the suspend: the same guest answers", async () => {
    const before = await ask(address);
    const [process] = await place.processes();
    await place.client.suspendMachine(place.app, id);
    expect((await place.client.startMachine(place.app, id)).previous_state).toBe("suspending");
    await place.reach(id, "running");
    expect(await askUntilAnswered(address)).toMatchObject({ nonce: before.nonce, count: before.count + 1 });
    expect(await place.processes()).toEqual([process]);
    expect((await place.client.listMachineEvents(place.app, id))[0]?.type).toBe("capture_cancelled");
    expect((await place.get(id)).snapshot).toBeNull();
  });

  test("a wake notes which memory it needed, for the next one; a damaged note harms nobody", {
    tags: "again",
  }, async () => {
    const note = join(place.dataDir, "machines", id, "hot-pages.json");
    const sleepAndWake = async () => {
      await place.suspend(id);
      await place.start(id);
      return askUntilAnswered(address);
    };
    const before = await askUntilAnswered(address);
    await rm(note, { force: true });
    await sleepAndWake();
    const ranges = async () => JSON.parse(await readFile(note, "utf8").catch(() => "[]")) as [number, number][];
    await expect.poll(async () => (await ranges()).length, { timeout: 10_000 }).toBeGreaterThan(0);
    const { size } = await stat(join(place.dataDir, "machines", id, "memory"));
    for (const [from, to] of await ranges()) expect(from >= 0 && from < to && to <= size / 4096).toBe(true);
    await writeFile(note, '[[0, 1], "');
    await sleepAndWake();
    await writeFile(note, "[[0,1],[99999999,100000000]]");
    expect(await sleepAndWake()).toMatchObject({ nonce: before.nonce, count: before.count + 3 });
  });

  describe("a snapshot that no longer fits is refused, and the start is cold with the reason", () => {
    const coldStart = async () => {
      await place.start(id);
      await askUntilAnswered(address);
      return (await place.get(id)).last_boot;
    };

    test("new code: suspended, then updated", { tags: "again" }, async () => {
      await place.suspend(id);
      const config = { image: SMALL_APP, services: [{ internal_port: 8080 }], env: { RELEASE: "2" } };
      await place.client.updateMachine(place.app, id, config);
      await place.reach(id, "suspended");
      expect(await place.get(id)).toMatchObject({ state: "suspended", snapshot: null, config });
      expect(await coldStart()).toMatchObject({ kind: "cold", reason: "updated" });
    });

    test("one changed bit, found because the host was restarted; without one, the memory is read and resumed", async () => {
      const before = await askUntilAnswered(address);
      await place.suspend(id);
      await sealFromAnotherBoot(place, id);
      await place.start(id);
      expect(await askUntilAnswered(address)).toMatchObject({ nonce: before.nonce, count: before.count + 1 });
      await place.suspend(id);
      const generation = await sealFromAnotherBoot(place, id);
      {
        await using memory = await open(join(generation, "memory"), "r+");
        const byte = Buffer.alloc(1);
        await memory.read(byte, 0, 1, 70_000_001);
        await memory.write(Buffer.from([(byte[0] as number) ^ 4]), 0, 1, 70_000_001);
      }
      expect(await coldStart()).toMatchObject({
        kind: "cold",
        reason: expect.stringMatching(/^snapshot_corrupt: the memory file has changed, in MiB 67 of \d+$/),
      });
    });

    test("another version of QEMU", { tags: "again" }, async () => {
      await place.suspend(id);
      const other = join(place.dataDir, "qemu-other");
      await writeFile(
        other,
        '#!/bin/sh\n[ "$1" = --version ] && { echo "QEMU emulator version 99.0.0"; exit; }\nexec qemu-system-x86_64 "$@"\n',
      );
      await chmod(other, 0o755);
      await place.served.stop();
      await expect(place.served.start({ HIBERNAUT_QEMU: other })).rejects.toThrow(
        /^This start would cost 1 sleeping machine its memory\. .*`hibernaut serve --drop-snapshots`\.$/,
      );
      await place.served.start({ HIBERNAUT_QEMU: other }, ["--drop-snapshots"]);
      expect(await coldStart()).toMatchObject({
        kind: "cold",
        reason: expect.stringMatching(/^hypervisor_version_changed: .* is 99\.0\.0 \(another series of QEMU\)$/),
      });
      await place.served.stop();
      await place.served.start();
    });
  });

  test("a machine that is stopped ends its app with the signal, and starts afresh", { tags: "again" }, async () => {
    const before = await askUntilAnswered(address);
    await place.client.stopMachine(place.app, id);
    await place.reach(id, "stopped");
    expect(await place.processes()).toEqual([]);
    expect((await place.get(id)).state_reason).toBe("the app exited with code 0");
    await place.start(id);
    expect((await askUntilAnswered(address)).nonce).not.toBe(before.nonce);
    expect((await place.get(id)).last_boot).toMatchObject({ kind: "cold", reason: "stopped" });
  });
});
