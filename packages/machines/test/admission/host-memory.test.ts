/** How much memory is left, as the kernel tells it: of the host, and of control groups in both versions. */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import { HostMemory, meminfoAvailable } from "../../src/admission/host-memory.ts";

const MB = 1024 * 1024;
const MEMINFO = "MemTotal: 8000000 kB\nMemFree: 100 kB\nMemAvailable: 4194304 kB\nSwapFree: 9999999 kB\n";

async function host(files: Record<string, string>): Promise<{ memory: HostMemory; clock: { now: number } }> {
  const folder = await tempFolder();
  for (const [name, text] of Object.entries({ "proc/meminfo": MEMINFO, ...files })) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
  }
  const clock = { now: 0 };
  const sources = { proc: join(folder, "proc"), cgroups: join(folder, "cgroup") };
  return { memory: new HostMemory(sources, () => clock.now), clock };
}

describe("what is left", () => {
  test("of a host is what its kernel calls available: swap does not count", async () => {
    const { memory } = await host({});
    expect(memory.available()).toBe(4096 * MB);
    expect(meminfoAvailable("MemFree: 1 kB")).toBeUndefined();
  });

  test("of a group (version 2) is its limit without what the kernel cannot drop, and the tightest group above counts", async () => {
    const { memory } = await host({
      "proc/self/cgroup": "0::/system.slice/hibernaut.service\n",
      "cgroup/system.slice/memory.max": `${1000 * MB}\n`,
      "cgroup/system.slice/memory.current": `${900 * MB}\n`,
      "cgroup/system.slice/memory.stat": `anon ${300 * MB}\ninactive_file ${400 * MB}\nactive_file ${100 * MB}\nslab_reclaimable 0\n`,
      "cgroup/system.slice/hibernaut.service/memory.max": "max\n",
    });
    expect(memory.available()).toBe(600 * MB);
  });

  test("in a container, the limit is at the root of what it sees of the groups", async () => {
    const { memory } = await host({
      "proc/self/cgroup": "0::/../../docker/abc\n",
      "cgroup/memory.max": `${512 * MB}\n`,
      "cgroup/memory.current": `${112 * MB}\n`,
      "cgroup/memory.stat": "anon 1\n",
    });
    expect(memory.available()).toBe(400 * MB);
  });

  test("of a group in version 1, likewise, and its largest number means that there is none", async () => {
    const { memory } = await host({
      "proc/self/cgroup": "4:memory:/box\n0::/\n",
      "cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
      "cgroup/memory/box/memory.limit_in_bytes": `${2048 * MB}\n`,
      "cgroup/memory/box/memory.usage_in_bytes": `${1024 * MB}\n`,
      "cgroup/memory/box/memory.stat": `total_inactive_file ${24 * MB}\ntotal_active_file ${100 * MB}\n`,
    });
    expect(memory.available()).toBe((2048 - 900) * MB);
  });

  test("a limit that is set later is found within seconds", async () => {
    const { memory, clock } = await host({
      "proc/self/cgroup": "0::/\n",
      "cgroup/memory.max": "max\n",
      "cgroup/memory.current": `${10 * MB}\n`,
    });
    expect(memory.available()).toBe(4096 * MB);
    const [{ memory: limited }] = [await host({ "proc/self/cgroup": "0::/\n", "cgroup/memory.max": `${20 * MB}` })];
    expect(limited.available(), "a group that vanishes limits nothing").toBe(4096 * MB);
    clock.now += 10_000;
    expect(memory.available()).toBe(4096 * MB);
  });

  test("of this host is a number", () => {
    const available = new HostMemory().available();
    expect(available).toBeGreaterThan(0);
  });
});
