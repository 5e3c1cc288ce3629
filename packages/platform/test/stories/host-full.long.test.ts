/** A platform in a control group with little memory: machines that are kept warm make room, then starts are refused. */
import { existsSync } from "node:fs";
import { mkdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { PATIENT } from "../helpers/patient.ts";
import { NOTHING_LEFT, Place, WARM } from "../helpers/served.ts";
import { packSmallApp, SMALL_APP } from "../helpers/small-app/image.ts";

const MB = 1024 * 1024;
/** A guest, and its QEMU as admission counts it. */
const START_MB = 128 + 128;
const GROUPS = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"].find((folder) => existsSync(join(folder, "cgroup.procs")));

test.runIf(process.getuid?.() === 0)(
  "a control group with room for one machine",
  { timeout: 10 * 60_000 },
  async () => {
    await packSmallApp();
    const group = join(GROUPS ?? "", `hibernaut-full-${process.pid}`);
    const v1 = group.includes("/memory/");
    const limit = (bytes: number) =>
      writeFile(join(group, v1 ? "memory.limit_in_bytes" : "memory.max"), String(Math.round(bytes)));
    /** What the kernel cannot drop, in bytes. */
    const used = async () => {
      const stat = await readFile(join(group, "memory.stat"), "utf8");
      const field = (name: string) => Number(new RegExp(`^${name} (\\d+)`, "m").exec(stat)?.[1] ?? 0);
      const names = v1
        ? ["total_inactive_file", "total_active_file"]
        : ["inactive_file", "active_file", "slab_reclaimable"];
      const all = Number(await readFile(join(group, v1 ? "memory.usage_in_bytes" : "memory.current"), "utf8"));
      return all - names.reduce((sum, name) => sum + field(name), 0);
    };
    await mkdir(group);
    onTestFinished(() => rmdir(group));
    const place = await Place.open({ ...PATIENT, ...WARM, HIBERNAUT_MEMORY_RESERVE: "0" });
    onTestFinished(async () => {
      expect(await place.close()).toEqual(NOTHING_LEFT);
    });
    await limit(8192 * MB);
    await writeFile(join(group, "cgroup.procs"), String(place.served.pid));

    const { client, app } = place;
    const config = { image: SMALL_APP, guest: { memory_mb: 128 }, services: [{ internal_port: 8080 }] };
    const make = async () => (await client.createMachine(app, { config, skip_launch: true })).machine_id;
    const [first, second] = [await make(), await make()];
    const awake = async () => (await place.processes()).map(({ machineId }) => machineId);
    await place.start(first);
    await place.suspend(first);
    expect(await awake(), "its QEMU is kept").toEqual([first]);

    await limit((await used()) + (START_MB - 20) * MB);
    await place.start(second);
    expect(await awake(), "the kept one has made room").toEqual([second]);
    const metrics = await fetch(`${place.served.apiUrl}/metrics`, {
      headers: { authorization: `Bearer ${await place.token()}` },
    });
    expect(await metrics.text()).toMatch(/^hibernaut_warm_evictions_total\{reason="room"\} 1$/m);

    await limit((await used()) + 2 * 128 * MB);
    await expect(client.startMachine(app, first)).rejects.toMatchObject({ status: 503, code: "host_full" });
    expect((await place.get(first)).state).toBe("suspended");
    await limit((await used()) + 8192 * MB);
    await place.start(first);
    expect((await place.get(first)).last_boot?.kind).toBe("resume");
    await vi.waitFor(async () => expect((await awake()).toSorted()).toEqual([first, second].toSorted()));
  },
);
