/**
 * What a newcomer types first.
 *
 * @module-tag again
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { promisify } from "node:util";
import { guestsIn } from "@hibernaut/hypervisor/qemu/find-processes";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { ownPlatform } from "../helpers/platform-process.ts";
import { dataFolder } from "../helpers/qemu-world.ts";

const ROOT = join(import.meta.dirname, "../../../..");

let folder: Awaited<ReturnType<typeof dataFolder>>;
// Typed again, it finds the image and the verdict about KVM that the first one left.
beforeAll(async () => {
  folder = await dataFolder();
});
afterEach(async () => {
  expect(await guestsIn(folder.path)).toEqual([]);
});
afterAll(() => folder.dispose());

function up(...options: string[]): { child: ChildProcess; output: { out: string; err: string } } {
  const env = {
    ...process.env,
    ...ownPlatform(folder.path),
    // Where KVM never runs a guest, the proof takes all the time that it gets.
    HIBERNAUT_KVM_PROOF_TIMEOUT: "2s",
  };
  const child = spawn("npm", ["run", "--silent", "up", "--", ...options], { cwd: ROOT, env, detached: true });
  const output = { out: "", err: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output.out += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (output.err += text));
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
  expect((result.cold_start_ms ?? 0) / (result.resume_ms ?? 1)).toBeGreaterThan(2);
});

test("npm run up, typed again, shows every step, and stays for what its last lines say, until Ctrl-C ends it cleanly", async () => {
  const { child, output } = up();
  const closed = once(child, "close") as Promise<[number]>;
  await expect.poll(() => output.err, { timeout: 100_000, interval: 100 }).toMatch(/Press Ctrl-C to end/);
  // On a busy host the setup before it takes long enough to show steps, too.
  const tour = output.err.slice(output.err.indexOf("[1/5] start the platform"));
  const steps = [...tour.matchAll(/^\[(\d)\/5\] .*\n(done) in/gm)].map(([, number, done]) => `${number} ${done}`);
  expect(steps, output.err).toEqual(["1 done", "2 done", "3 done", "4 done", "5 done"]);
  expect(output.err).toMatch(/search\s+2 products match "tea"/);
  expect(output.err).toMatch(/memory\s+kept: the same process/);

  const [, invited = ""] = /In another terminal, .*:\n((?: {2}.*\n)+)/.exec(output.err) ?? [];
  const lines = invited.split("\n").map((line) => line.trim());
  expect(lines.filter((line) => line.includes("hibernaut machine"))).toHaveLength(2);
  const followed = await shell(lines);
  expect(followed).toMatch(/is suspended/);
  expect(followed).toMatch(/^hibernaut-wake: warm; dur=\d+/im);
  expect(followed).toContain("Jalapeño Green Tea Jar");

  // As a terminal does: to the whole foreground group.
  process.kill(-(child.pid ?? Number.NaN), "SIGINT");
  await closed;
  expect(output.err).not.toMatch(/Error|ERR/);
});

/** Types the lines into a shell somewhere else, one after the other; what they print. */
async function shell(lines: string[]): Promise<string> {
  const env = { ...process.env, ...ownPlatform(folder.path) };
  const { stdout, stderr } = await promisify(execFile)("sh", ["-e", "-c", lines.join("\n")], { cwd: folder.path, env });
  return stdout + stderr;
}
