/** What a newcomer types first. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { findProcesses } from "../../src/hypervisor/qemu/process.ts";
import { dataFolder } from "../helpers/qemu-world.ts";

const ROOT = join(import.meta.dirname, "../../../..");

let folder: Awaited<ReturnType<typeof dataFolder>>;
beforeEach(async () => {
  folder = await dataFolder();
});
afterEach(async () => {
  expect(await findProcesses(join(folder.path, "run"))).toEqual([]);
  await folder.dispose();
});

function up(...options: string[]): { child: ChildProcess; output: { out: string; err: string } } {
  const env = {
    ...process.env,
    HIBERNAUT_DATA_DIR: folder.path,
    XDG_CONFIG_HOME: join(folder.path, "cfg"),
    HIBERNAUT_API_LISTEN: "127.0.0.1:0",
    HIBERNAUT_PROXY_LISTEN: "127.0.0.1:0",
  };
  const child = spawn("npm", ["run", "--silent", "up", "--", ...options], {
    cwd: ROOT,
    env,
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const output = { out: "", err: "" };
  child.stdout?.on("data", (chunk: Buffer) => {
    output.out += chunk.toString();
  });
  child.stderr?.on("data", (chunk: Buffer) => {
    output.err += chunk.toString();
  });
  return { child, output };
}

test("npm run up -- --exit --json: a machine starts, sleeps and wakes where it stopped", async () => {
  const { child, output } = up("--exit", "--json");
  const [code] = (await once(child, "close")) as [number];
  expect(code, output.err).toBe(0);
  const result = JSON.parse(output.out.trim().split("\n").at(-1) ?? "") as Record<string, number>;
  expect(result).toMatchObject({
    resumed: true,
    accelerator: expect.stringMatching(/^(kvm|tcg)$/),
    suspend_ms: expect.any(Number),
    search: "tea",
    found: ["Jalapeño Green Tea Jar", "Salted Green Tea"],
    requests: [1, 2],
    app: "hibernaut-tour",
    machine_id: expect.any(String),
    address: expect.stringMatching(/^[\d.]+:3000$/),
  });
  // Not a race but what resume is for; both were measured in the same minute on the same host.
  expect((result.cold_start_ms ?? 0) / (result.resume_ms ?? 1)).toBeGreaterThanOrEqual(8);
});

test("npm run up stays until Ctrl-C, which ends it cleanly", async () => {
  const { child, output } = up();
  const closed = once(child, "close") as Promise<[number]>;
  await expect.poll(() => output.err, { timeout: 100_000, interval: 100 }).toMatch(/Ctrl-C ends/);
  // As a terminal does: to the whole foreground group.
  process.kill(-(child.pid ?? Number.NaN), "SIGINT");
  await closed;
  expect(output.err).toMatch(/search\s+2 products match "tea"/);
  expect(output.err).toMatch(/memory\s+kept: the same process/);
  expect(output.err).not.toMatch(/Error|ERR/);
});
