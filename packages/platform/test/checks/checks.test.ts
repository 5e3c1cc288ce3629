/** How machines are looked at: the rules as tables, and real ports. */
import { createServer, type Server } from "node:http";
import { createServer as createTcpServer, type AddressInfo } from "node:net";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import { type Check, checksOf, isHealthy, judge, milliseconds, nextLookMs } from "../../src/checks/policy.ts";
import { probe } from "../../src/checks/probe.ts";
import { CheckRunner } from "../../src/checks/runner.ts";
import type { CheckResult } from "../../src/domain/check.ts";
import type { Machines } from "../../src/machines/resources/machines.ts";
import type { MachineView } from "../../src/machines/view.ts";
import type { MachineRecord } from "../../src/domain/machine.ts";
import { quietFor } from "../helpers/quiet.ts";

const check = (more: Partial<Check> = {}): Check => ({
  name: "web",
  type: "http",
  port: 1,
  intervalMs: 60_000,
  timeoutMs: 500,
  graceMs: 10_000,
  method: "GET",
  path: "/health",
  headers: {},
  ...more,
});
const result = (status: CheckResult["status"]): CheckResult => ({ name: "web", status, output: "", updated_at: "" });

describe("rules", () => {
  test("defaults, the first service's port, and times in every form", () => {
    const services = [{ internal_port: 3000 }];
    expect(checksOf({ image: "x", services, checks: { up: { type: "tcp" } } })).toEqual([
      {
        name: "up",
        type: "tcp",
        port: 3000,
        intervalMs: 15_000,
        timeoutMs: 5000,
        graceMs: 10_000,
        method: "GET",
        path: "/",
        headers: {},
      },
    ]);
    const [own] = checksOf({
      image: "x",
      checks: { up: { type: "http", port: 9, interval: "2m", timeout: 3, grace_period: "500ms" } },
    });
    expect(own).toMatchObject({ port: 9, intervalMs: 120_000, timeoutMs: 3000, graceMs: 500 });
    expect(checksOf({ image: "x", checks: { nowhere: { type: "tcp" } } })).toEqual([]);
    expect(milliseconds("1h")).toBe(3_600_000);
    expect(milliseconds(undefined)).toBeUndefined();
  });

  test.each<[string, boolean, CheckResult["status"] | undefined, number, CheckResult["status"]]>([
    ["passes", true, undefined, 0, "passing"],
    ["fails at first, within its grace", false, undefined, 9000, "warning"],
    ["still fails within its grace", false, "warning", 9999, "warning"],
    ["fails after its grace", false, "warning", 10_000, "critical"],
    ["fails after it had passed, grace or not", false, "passing", 1000, "critical"],
    ["passes again", true, "critical", 60_000, "passing"],
  ])("a check that %s", (_name, passed, before, sinceStart, status) => {
    const finding = { passed, output: "" };
    expect(judge(check(), finding, before && result(before), sinceStart).status).toBe(status);
  });

  test("a check that does not pass is looked at often, one that does at its interval", () => {
    expect(nextLookMs(check(), result("passing"))).toBe(60_000);
    expect(nextLookMs(check(), result("warning"))).toBe(250);
    expect(nextLookMs(check({ intervalMs: 100 }), result("critical"))).toBe(100);
  });

  test("healthy is who passes all; a check that was never looked at does not pass", () => {
    const two = [check(), check({ name: "db" })];
    expect(isHealthy(two, [result("passing")])).toBe(false);
    expect(isHealthy(two, [result("passing"), { ...result("passing"), name: "db" }])).toBe(true);
    expect(isHealthy([check()], [result("warning")])).toBe(false);
    expect(isHealthy([], [])).toBe(true);
  });
});

let servers: { close(): unknown }[] = [];
afterEach(() => {
  for (const server of servers) server.close();
  servers = [];
});

async function serving(handler: Parameters<typeof createServer>[1]): Promise<{ server: Server; port: number }> {
  const server = createServer(handler as never);
  servers.push({ close: () => (server.closeAllConnections(), server.close()) });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, port: (server.address() as AddressInfo).port };
}

const never = new AbortController().signal;

describe("a look", () => {
  test("over HTTP: method, path and headers go out, 2xx passes, anything else says what it was", async () => {
    let ill = false;
    const { port } = await serving((request, response) => {
      const asked = `${request.method} ${request.url} ${String(request.headers["x-probe"])}`;
      response.writeHead(ill ? 503 : 200).end(ill ? "no database" : asked);
    });
    const http = check({ port, method: "POST", path: "/up?x=1", headers: { "x-probe": ["yes"] } });
    expect(await probe("127.0.0.1", http, never)).toEqual({ passed: true, output: "200 POST /up?x=1 yes" });
    ill = true;
    expect(await probe("127.0.0.1", http, never)).toEqual({ passed: false, output: "503 no database" });
  });

  test("a port that is closed, and one that says nothing", async () => {
    const closed = createTcpServer();
    await new Promise<void>((resolve) => closed.listen(0, "127.0.0.1", resolve));
    const { port } = closed.address() as AddressInfo;
    await new Promise((resolve) => closed.close(resolve));
    expect(await probe("127.0.0.1", check({ type: "tcp", port }), never)).toMatchObject({
      passed: false,
      output: expect.stringMatching(/ECONNREFUSED/),
    });
    const { port: silent } = await serving(() => {});
    expect(await probe("127.0.0.1", check({ port: silent, timeoutMs: 50 }), never)).toEqual({
      passed: false,
      output: "no answer in 50 ms",
    });
    expect(await probe("127.0.0.1", check({ type: "tcp", port: silent }), never)).toMatchObject({ passed: true });
  });
});

describe("the runner", () => {
  /** Machines of which there is one, whose record the test changes. */
  function oneMachine(record: Partial<MachineRecord>) {
    const listeners = new Set<(record: MachineRecord) => void>();
    const whole = { id: "m", address: "127.0.0.1", lastBoot: null, ...record } as MachineRecord;
    const machines = {
      onChange: (listener: (record: MachineRecord) => void) => (
        listeners.add(listener), () => listeners.delete(listener)
      ),
      all: () => [{ record: whole } as MachineView],
    } satisfies Pick<Machines, "all" | "onChange">;
    const runner = new CheckRunner();
    onTestFinished(() => runner.close());
    runner.start(machines);
    const become = (state: MachineRecord["state"], more: Partial<MachineRecord> = {}) =>
      listeners.forEach((listener) => listener(Object.assign(whole, { state }, more)));
    return { runner, become };
  }

  test("a machine is looked at while it runs, and never while it sleeps", async () => {
    let looks = 0;
    const { port } = await serving((_request, response) => response.end(String((looks += 1))));
    const config = { image: "x", checks: { web: { type: "http" as const, port, interval: "10ms" } } };
    const { runner, become } = oneMachine({ state: "running", config });
    expect(runner.isHealthy("m")).toBe(false);
    await expect.poll(() => runner.isHealthy("m")).toBe(true);
    expect(runner.results("m")).toMatchObject([
      { name: "web", status: "passing", output: expect.stringMatching(/200/) },
    ]);
    become("suspended");
    expect(runner.results("m")).toEqual([]);
    const before = looks;
    await quietFor(60);
    expect(looks).toBeLessThanOrEqual(before + 1);
  });

  test("a machine that resumes is as healthy as it was, at once; one that starts from scratch has to show it", () => {
    const config = { image: "x", checks: { web: { type: "tcp" as const, port: 1 } } };
    const { runner, become } = oneMachine({ state: "suspended", config });
    become("running", { lastBoot: { kind: "resume", reason: "", at: "", duration_ms: 1 } });
    expect(runner.isHealthy("m")).toBe(true);
    become("stopped");
    become("running", { lastBoot: { kind: "cold", reason: "", at: "", duration_ms: 1 } });
    expect(runner.isHealthy("m")).toBe(false);
  });

  test("a change of health is told, once", async () => {
    let ill = false;
    const { port } = await serving((_request, response) => response.writeHead(ill ? 500 : 200).end());
    const config = { image: "x", checks: { web: { type: "http" as const, port, interval: "5ms" } } };
    const { runner } = oneMachine({ state: "running", config });
    const told: boolean[] = [];
    runner.onChange((id) => told.push(runner.isHealthy(id)));
    await expect.poll(() => told).toEqual([true]);
    ill = true;
    await expect.poll(() => told).toEqual([true, false]);
  });
});
