/**
 * `machine why`, `machine clone`, `open`, and leaving out `--app`.
 *
 * @module-tag again
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { COLD_REASONS, type Machine } from "@hibernaut/client";
import type { Activity } from "@hibernaut/domain/awake";
import { describe, expect, test } from "vitest";
import { type Sample, topRows } from "../src/top.ts";
import { whyText } from "../src/why.ts";
import { useCli } from "./helpers.ts";

const NOW = Date.parse("2026-03-01T12:00:00Z");
const boot = (kind: string, reason: string) => ({ kind, reason, at: "2026-03-01T11:00:00Z", duration_ms: 307.4 });
const machine = (changes: object) =>
  ({
    name: "web",
    state: "running",
    state_reason: null,
    crash: null,
    cordoned: false,
    suspend: { eligible: true, reasons: [] },
    config: { image: "app:1", services: [{ internal_port: 8080 }] },
    last_boot: boot("resume", "snapshot"),
    ...changes,
  }) as unknown as Machine;
const NOWHERE = { urls: [], draining: false };
const awake = { reason: "open_requests", message: "2 requests are open at the proxy." } as never;

describe("why", () => {
  test.each([
    [{}, awake, "Machine web is awake. 2 requests are open at the proxy."],
    [
      { suspend: { eligible: false, reasons: ["memory is 4096 MB"] } },
      awake,
      "Machine web is awake. 2 requests are open at the proxy. It cannot be suspended: memory is 4096 MB.",
    ],
    [{ state: "suspended" }, null, "Machine web is asleep, with its memory: a request to http://shop wakes it."],
    [
      { state: "suspended", cordoned: true },
      null,
      "Machine web is asleep, with its memory: `hibernaut start web` wakes it. It is cordoned, so requests neither reach nor wake it: `hibernaut machine uncordon web` ends that.",
    ],
    [
      { state: "stopped", state_reason: "the app exited with code 3" },
      null,
      "Machine web is stopped: the app exited with code 3. To start it: a request to http://shop wakes it.",
    ],
  ])("%j", (changes, now, first) => {
    const activity = { state: "running", awake: now, process: null } as const;
    const text = whyText(machine(changes), activity, { urls: ["http://shop"], draining: false }, NOW);
    expect(text).toBe(`${first}\nIts last start, 60 min ago, was a resume, and took 307 ms.`);
  });

  test("what only its network reaches is woken from there, and no address of the proxy is named", () => {
    const asleep = (protocol: "http" | "tcp") =>
      whyText(
        machine({ state: "suspended", config: { image: "redis:7", services: [{ internal_port: 6379, protocol }] } }),
        { state: "suspended", awake: null, process: null },
        { urls: ["http://cafe-queue.localhost"], draining: false, network: "cafe" },
        NOW,
      );
    expect(asleep("tcp")).toMatch(/memory: a connection to one of its ports, as from the network cafe, wakes it\.$/m);
    expect(asleep("http")).toMatch(/memory: a request to http:\/\/cafe-queue.localhost wakes it\.$/m);
  });

  test.each([
    [
      boot("cold", "vmm_lost"),
      "was cold, because its QEMU process had ended unexpectedly: a crash of the guest's kernel or of QEMU, a guest that KVM could not continue, a kill, a reboot of the host. It took",
    ],
    [boot("cold", "resume_failed: no answer: 5 s"), "did not wake in time (no answer: 5 s). It took 307 ms."],
    [boot("cold", "new_reason"), "was cold, because new_reason. It took 307 ms."],
    [null, "It has never been started."],
  ])("%j", (last, said) => {
    expect(whyText(machine({ last_boot: last }), { state: "running", awake, process: null }, NOWHERE, NOW)).toContain(
      said,
    );
  });

  test.each([
    [{ state: "suspended" }, "Machine web is asleep, with its memory. The platform is draining, so nothing starts it"],
    // The drain ends first; until then uncordoning would change nothing.
    [{ state: "suspended", cordoned: true }, "Machine web is asleep, with its memory. The platform is draining"],
    [{ state: "stopped" }, "Machine web is stopped. The platform is draining, so nothing starts it"],
    [{ state: "failed", state_reason: "no memory." }, "Machine web is failed: no memory. The platform is draining"],
  ])("promises nothing in a drain: %j", (changes, first) => {
    const draining = { urls: ["http://shop"], draining: true };
    const text = whyText(machine(changes), { state: "running", awake: null, process: null }, draining, NOW);
    expect(text.startsWith(first), text).toBe(true);
    expect(text).toContain("`hibernaut undrain` ends that.");
    expect(text).not.toContain("http://shop");
  });

  test("knows every reason that the documents list", () => {
    const text = readFileSync(join(import.meta.dirname, "../../../docs/machines.md"), "utf8");
    const [, section = ""] = /^## Reasons for the last start$([^]*?)^## /m.exec(text) ?? [];
    const documented = [...section.matchAll(/^\| `(\w+)` \|/gm)].map(([, reason]) => reason);
    expect(Object.keys(COLD_REASONS)).toEqual(documented);
  });
});

describe("top", () => {
  const sample = (name: string, at: number, cpuMs: number | null): Sample => ({
    machine: machine({ id: name, name, app_name: "shop", state: cpuMs === null ? "suspended" : "running" }),
    activity: {
      state: "running",
      awake: null,
      process: cpuMs === null ? null : { cpu_ms: cpuMs, resident_bytes: 1e6 },
    },
    at,
  });
  const byId = (samples: Sample[]) => new Map(samples.map((one) => [one.machine.id, one]));

  test("shows machines that are kept warm, between those that run and the others that sleep", () => {
    const warm = sample("warm", 2000, 100);
    const kept: Sample = {
      ...warm,
      machine: {
        ...warm.machine,
        state: "suspended",
        snapshot: { created_at: "", size_bytes: 1, warm_until: new Date(NOW + 60_000).toISOString() },
      },
    };
    const rows = topRows([sample("asleep", 2000, null), kept, sample("idle", 2000, 1)], new Map(), NOW);
    expect(rows.map(([, name, state, , memory, , why]) => [name, state, memory, why])).toEqual([
      ["idle", "running", "1.0 MB", ""],
      ["warm", "suspended (warm)", "1.0 MB", "asleep; kept warm for 60 s more"],
      ["asleep", "suspended", "", ""],
    ]);
  });

  test("shows the busiest first, the sleeping last, and no CPU of a process that has just started", () => {
    const before = byId([
      sample("lazy", 0, 100),
      sample("busy", 0, 100),
      sample("again", 0, 9000),
      sample("asleep", 0, null),
    ]);
    const now = [
      sample("asleep", 2000, null),
      sample("lazy", 2000, 200),
      sample("busy", 2000, 3100),
      sample("again", 2000, 5),
    ];
    const rows = topRows([...now, sample("new", 2000, 7)], before, NOW);
    expect(rows.map(([, name, , cpu]) => `${name} ${cpu}`.trim())).toEqual([
      "busy 150 %",
      "lazy 5 %",
      "again",
      "new",
      "asleep",
    ]);
  });
});

describe("with a platform", () => {
  const cli = useCli({
    activity: (): Activity => ({
      open: 0,
      commands: 1,
      idleMs: 5,
      reason: "commands",
      message: "1 command is running in it.",
      sleepsInMs: null,
    }),
  });

  test("why answers for a machine, clone makes another, and open prints the address", async () => {
    const web = await cli.run("--name web --memory 320");
    const why = await cli.hibernaut("machine why");
    expect(why.stdout).toMatch(
      /^Machine web is awake\. 1 command is running in it\.\nIts last start, .* because it never ran before\./,
    );
    expect((await cli.json("machine why")).document).toMatchObject({
      machine_id: web,
      state: "running",
      awake: { reason: "commands", running_commands: 1, sleeps_in_ms: null },
      last_boot: { kind: "cold" },
    });
    const { document: copy } = await cli.json("machine clone web --name web-2");
    expect(copy).toMatchObject({ name: "web-2", state: "running", config: { guest: { memory_mb: 320 } } });
    expect(copy.id).not.toBe(web);
    const top = await cli.hibernaut("top --app shop");
    expect(top.stdout).toMatch(/^APP +NAME +STATE +CPU +HOST MEMORY +LAST START +WHY IT IS AWAKE$/m);
    expect(top.stdout).toMatch(/\n\nHOST MEMORY is what QEMU occupies of the host's RAM\. 100 % CPU is one CPU\.\n$/);
    expect(top.stdout).toMatch(/^shop +web +running +0 % +320 MB +cold in \d+ ms, .* +1 command is running in it\.$/m);
    expect((await cli.json("top")).document).toContainEqual(
      expect.objectContaining({ name: "web", process: { cpu_ms: 1000, resident_bytes: 320 * 1024 * 1024 } }),
    );
    const status = await cli.hibernaut("status --app shop");
    expect(status.stdout).toMatch(/^answers at +http:\/\/shop\.localhost:8080\/$/m);
    expect(status.stdout).toMatch(/ +web +running +cold \(first_start\) in \d+ ms, \d+ s ago +none$/m);
    expect((await cli.json("status --app shop")).document).toMatchObject({
      name: "shop",
      release: null,
      machines: [{ name: "web" }, { name: "web-2" }],
    });
    expect((await cli.hibernaut("status --app nosuch")).code).toBe(1);
    expect((await cli.hibernaut("open /products")).stdout).toBe("http://shop.localhost:8080/products\n");
    await cli.hibernaut("machine suspend web-2");
    expect((await cli.hibernaut("machine why web-2")).stdout).toMatch(/ asleep, with its memory: a request to /);
    await cli.hibernaut("drain");
    expect((await cli.hibernaut("machine why web-2")).stdout).toMatch(/ asleep, with its memory\. The platform is/);
    await cli.hibernaut("undrain");
  });

  test("open and status give no address that nothing answers at", async () => {
    const job = { HIBERNAUT_APP: "job" };
    await cli.hibernaut("apps create job");
    const none = await cli.hibernaut("open", job);
    expect(none).toMatchObject({ code: 1, stdout: "" });
    expect(none.stderr).toBe(
      "Error: App job has no machine with a service, so nothing answers at its address. Create one with `hibernaut machine run <image> --app job --port <port>`.\n",
    );
    const { document } = await cli.json("machine run app:1 --name worker", job);
    expect((await cli.hibernaut("open", job)).stderr).toBe(
      "Error: App job has no machine with a service, so nothing answers at its address. Give one a port with `hibernaut machine update worker --app job --port <port>`.\n",
    );
    expect((await cli.hibernaut("status --app job")).stdout).toMatch(
      /^answers at +nowhere: no machine has a service$/m,
    );
    await cli.hibernaut(`machine update ${document.id} --port 8080`, job);
    expect((await cli.hibernaut("open", job)).stdout).toBe("http://job.localhost:8080/\n");
    await cli.hibernaut("apps destroy job --force");
  });

  test("the only app need not be named; of several, all are listed; deploy never guesses", async () => {
    const nowhere = { HIBERNAUT_APP: "" };
    expect(await cli.hibernaut("machine list", nowhere)).toMatchObject({ code: 0 });
    const deploy = await cli.deploy('[build]\nimage = "app:1"\n', "", nowhere);
    expect(deploy).toMatchObject({ code: 2, stderr: expect.stringContaining("No app. Add --app <name>") });
    await cli.hibernaut("apps create blog");
    expect(await cli.hibernaut("machine list", nowhere)).toMatchObject({
      code: 2,
      stderr: "Error: Which app? Add --app with one of: blog, shop.\n",
    });
    await cli.hibernaut("apps destroy blog --yes");
    expect((await cli.hibernaut("machine list", nowhere)).code).toBe(0);
  });
});
