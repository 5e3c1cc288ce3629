import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import { MemoryPressure } from "../../src/warm/pressure.ts";

const CALM = "some avg10=0.10 avg60=3.00 avg300=9.00 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
const STALLED = CALM.replace("some avg10=0.10", "some avg10=12.50");
const PLENTY = "MemTotal:       1000 kB\nMemFree:         20 kB\nMemAvailable:    500 kB\n";
const V2 = "0::/system.slice/hibernaut.service\n";
const V1 = "9:name=systemd:/\n4:memory:/hosting/one\n0::/\n";

let folder: string;
beforeEach(async () => {
  folder = await tempFolder("pressure");
});

/** Whether memory is short on a host with these files. */
async function short(files: Record<string, string>): Promise<boolean> {
  const all = { "proc/meminfo": PLENTY, "proc/pressure/memory": CALM, "proc/self/cgroup": V2, ...files };
  for (const [path, text] of Object.entries(all)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  return new MemoryPressure({ proc: join(folder, "proc"), cgroups: join(folder, "cgroup") }).short();
}

describe("memory is not short", () => {
  test("on a host with plenty of it, whatever is free", async () => {
    expect(await short({})).toBe(false);
  });

  test("when nothing can be read", async () => {
    expect(new MemoryPressure({ proc: join(folder, "none"), cgroups: join(folder, "none") }).short()).toBe(false);
  });

  test("in a group without a limit, or full of what the kernel can drop", async () => {
    const group = "cgroup/system.slice/hibernaut.service";
    const stat = "anon 200\nfile 790\n";
    expect(await short({ [`${group}/memory.max`]: "max\n", [`${group}/memory.stat`]: stat })).toBe(false);
    expect(await short({ [`${group}/memory.max`]: "1000\n", [`${group}/memory.stat`]: stat })).toBe(false);
  });
});

describe("memory is short", () => {
  test("when programs wait for it", async () => {
    expect(await short({ "proc/pressure/memory": STALLED })).toBe(true);
  });

  test("when the kernel has next to nothing to give", async () => {
    expect(await short({ "proc/meminfo": PLENTY.replace("500", "49") })).toBe(true);
  });

  test("in a group that is nearly full, or waits", async () => {
    const group = "cgroup/system.slice/hibernaut.service";
    const full = { [`${group}/memory.max`]: "1000\n", [`${group}/memory.stat`]: "anon 900\nfile 10\n" };
    expect(await short(full)).toBe(true);
    expect(await short({ ...full, [`${group}/memory.max`]: "max\n", [`${group}/memory.pressure`]: STALLED })).toBe(
      true,
    );
  });

  test("in a group of version 1 that is nearly full", async () => {
    expect(
      await short({
        "proc/self/cgroup": V1,
        "cgroup/memory/hosting/one/memory.limit_in_bytes": "1000\n",
        "cgroup/memory/hosting/one/memory.stat": "cache 10\ntotal_cache 10\ntotal_rss 950\n",
      }),
    ).toBe(true);
  });
});
