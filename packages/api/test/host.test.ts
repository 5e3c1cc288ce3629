/** What the platform runs on, and what is wrong with it. */
import { expect, test } from "vitest";
import { type Finding, HostFindings } from "../src/findings.ts";
import { testApi } from "./helpers.ts";

test("an admin sees what the host has, and what of it is taken", async () => {
  const { call } = await testApi();
  const { body } = await call("GET", "/v1/platform/host");
  expect(body).toMatchObject({
    accelerator: { name: "fake", reason: "a test" },
    versions: { platform: "0.1.0", qemu: "1", node: process.versions.node, guest_bundle: "1" },
    warm: { used_bytes: 0, machines: 0 },
  });
  expect(body.memory.available_bytes).toBeGreaterThan(0);
  expect(body.memory.total_bytes).toBeGreaterThan(body.memory.available_bytes / 2);
  expect(body.disk.total_bytes).toBeGreaterThan(body.disk.free_bytes);
  expect(body.host_uptime_seconds).toBeGreaterThanOrEqual(body.uptime_seconds);
});

test("an admin sees what doctor finds", async () => {
  const { call } = await testApi({
    async *doctor() {
      yield { name: "node", status: "ok", found: "24" };
      yield { name: "disk", status: "warn", found: "1 GB free", fix: "du" };
      yield { name: "qemu", status: "fail", found: "not installed", fix: "apt-get install qemu" };
    },
  });
  expect((await call("GET", "/v1/platform/doctor")).body.findings).toEqual([
    { level: "ok", name: "node", message: "24", advice: null },
    { level: "warning", name: "disk", message: "1 GB free", advice: "du" },
    { level: "error", name: "qemu", message: "not installed", advice: "apt-get install qemu" },
  ]);
});

test("many readers share one examination, and a new one is made once it is old", async () => {
  let now = 0;
  let examinations = 0;
  const held = Promise.withResolvers<void>();
  const findings = new HostFindings({
    now: () => now,
    async *examine() {
      examinations += 1;
      const found = String(examinations);
      await held.promise;
      yield { name: "disk", status: "ok", found } satisfies Finding;
    },
  });
  const readers = [findings.read(), findings.read(), findings.read()];
  held.resolve();
  expect(await Promise.all(readers)).toEqual(readers.map(() => [{ name: "disk", status: "ok", found: "1" }]));
  now += 4_000;
  expect(await findings.read()).toMatchObject([{ found: "1" }]);
  now += 1_000;
  expect(await findings.read()).toMatchObject([{ found: "2" }]);
  expect(examinations).toBe(2);
});

test("a check that hangs keeps no reader waiting, and is not started twice", async () => {
  let examinations = 0;
  const held = Promise.withResolvers<void>();
  const findings = new HostFindings({
    waitMs: 20,
    async *examine() {
      examinations += 1;
      yield { name: "node", status: "ok", found: "24" } satisfies Finding;
      await held.promise;
      yield { name: "kvm", status: "ok", found: "works" } satisfies Finding;
    },
  });
  for (let reader = 0; reader < 2; reader += 1)
    expect(await findings.read()).toMatchObject([{ name: "node" }, { name: "doctor", status: "warn" }]);
  held.resolve();
  expect(await findings.read()).toMatchObject([{ name: "node" }, { name: "kvm" }]);
  expect(examinations).toBe(1);
});

test("a check that throws is a finding", async () => {
  const findings = new HostFindings({
    // oxlint-disable-next-line require-yield -- it fails before
    async *examine(): AsyncGenerator<Finding> {
      throw new Error("no such file");
    },
  });
  expect(await findings.read()).toMatchObject([{ status: "fail", found: expect.stringContaining("no such file") }]);
});
