/**
 * A disk that is full while a machine is being suspended. Needs root, to mount a small disk.
 *
 * @module-tag again
 */
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { askUntilAnswered, COUNTER_IMAGE } from "../helpers/qemu-world.ts";
import { NOTHING_LEFT, Place } from "../helpers/served.ts";

const run = promisify(execFile);
/** Room for the image (130 MB), two memories of 256 MB and what they need in addition. */
const DISK_MB = 900;

describe.runIf(process.getuid?.() === 0)("on a small disk", () => {
  let place: Place;
  let disk: string;

  beforeAll(async () => {
    disk = await mkdtemp(join(tmpdir(), "hibernaut-"));
    await run("mount", ["-t", "tmpfs", "-o", `size=${DISK_MB}m,mode=0700`, "tmpfs", disk]);
    const dispose = async () => {
      await run("umount", [disk]);
      await rm(disk, { recursive: true });
    };
    place = await Place.open({ HIBERNAUT_DISK_RESERVE: "0" }, { path: disk, dispose });
  });
  afterAll(async () => {
    expect(await place.close()).toEqual(NOTHING_LEFT);
  });

  /** To the last byte, whatever others write meanwhile: until the disk takes no more. */
  const fill = async () => {
    const filled = run("dd", ["if=/dev/zero", `of=${join(disk, "filler")}`, "bs=1M"]);
    await expect(filled).rejects.toThrow(/No space left on device/);
  };
  const empty = () => rm(join(disk, "filler"));

  test("the machine runs on, nothing is lost, and it says why; with room again it sleeps", async () => {
    const { machine_id: id, private_address: address } = await place.machine();
    // A sleep flushes the guest's disk: what it had still to write would make it stand still on a full one.
    await place.suspend(id);
    await place.start(id);
    const before = await askUntilAnswered(address);
    await fill();
    // Either the intent cannot even be stored, or the snapshot cannot be written: both are told.
    const refusal = await place.client.suspendMachine(place.app, id).then(
      () => undefined,
      (error: unknown) => error,
    );
    if (refusal !== undefined) expect(refusal).toMatchObject({ status: 503, code: "unavailable" });
    else await place.client.waitForMachine(place.app, id, { state: ["running"], timeout: 30 }).catch(() => {});
    expect(await askUntilAnswered(address)).toMatchObject({ nonce: before.nonce, count: before.count + 1 });
    await empty();
    await place.reach(id, "running");
    if (refusal === undefined) expect((await place.get(id)).state_reason).toMatch(/the last suspend failed: .*ENOSPC/);
    await place.suspend(id);
    await place.start(id);
    expect(await askUntilAnswered(address)).toMatchObject({ nonce: before.nonce, count: before.count + 2 });
  });

  test("a guest that writes more than fits is paused, says why, and continues once there is room", {
    tags: "again",
  }, async () => {
    const writer = `require("http").createServer((request, response) => {
      if (request.method === "POST") require("fs").writeFileSync("/tmp/big", Buffer.alloc(24 << 20, 7), { flush: true });
      response.end(String(require("fs").existsSync("/tmp/big") && require("fs").readFileSync("/tmp/big").every((byte) => byte === 7)));
    }).listen(8080)`;
    const { machine_id: id, private_address: address } = await place.machine({
      image: COUNTER_IMAGE,
      init: { cmd: ["-e", writer] },
    });
    await fill();
    const written = fetch(`http://${address}:8080/`, { method: "POST" });
    await expect
      .poll(async () => (await place.get(id)).state_reason, { timeout: 30_000 })
      .toMatch(/^the host's disk does not take the guest's writes/);
    // Asked to sleep now, it is refused or turns back; in no case is it lost.
    await place.client.suspendMachine(place.app, id).catch(() => {});
    await empty();
    expect(await (await written).text()).toBe("true");
    await expect.poll(async () => (await place.get(id)).state, { timeout: 30_000 }).toBe("running");
    await place.client.destroyMachine(place.app, id, { force: true });
    await place.reach(id, "destroyed");
  });

  test("a machine for which there is no room is not started, and says how much is missing", {
    tags: "again",
  }, async () => {
    await fill();
    await run("truncate", ["--size", "-30M", join(disk, "filler")]);
    const refused = await place.machine();
    expect(refused).toMatchObject({
      state: "failed",
      state_reason: expect.stringMatching(/MB free and machine .* needs 320 MB/),
    });
    await empty();
    await place.start(refused.machine_id);
    await askUntilAnswered(refused.private_address);
  });
});
