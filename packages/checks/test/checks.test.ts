/** Health checks: the rules as tables, and probes of real ports. */
import { createServer, type Server } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import type { CheckResult } from "@hibernaut/domain/check";
import { type CheckTimes, checkTimeRefusal, milliseconds } from "@hibernaut/domain/check-times";
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { Machines, MachineView } from "@hibernaut/machines";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import { MachineChanges } from "../../machines/src/changes.ts";
import { passOnce } from "../src/pass-once.ts";
import { checksOf, type HealthCheck, isHealthy, judge, nextCheckMs } from "../src/policy.ts";
import { probe } from "../src/probe.ts";
import { CheckResults } from "../src/results.ts";
import { CheckRunner } from "../src/runner.ts";

const check = (more: Partial<HealthCheck> = {}): HealthCheck => ({
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

  test("never run without a pause, even if an earlier release stored that", () => {
    const stored = { type: "http" as const, port: 9, interval: "0s", timeout: "999999h" };
    expect(checksOf({ image: "x", checks: { up: stored } })).toMatchObject([{ intervalMs: 100, timeoutMs: 3_600_000 }]);
  });

  test.each<[CheckTimes, string | undefined]>([
    [{ interval: "0s" }, '`interval` of a check cannot be 0s. Use 100ms to 1h, as in "15s" or "500ms".'],
    [{ interval: "99ms" }, '`interval` of a check cannot be 99ms. Use 100ms to 1h, as in "15s" or "500ms".'],
    [{ timeout: "2h" }, '`timeout` of a check cannot be 2h. Use 100ms to 1h, as in "15s" or "500ms".'],
    [{ grace_period: "2h" }, '`grace_period` of a check cannot be 2h. Use 0s to 1h, as in "15s" or "500ms".'],
    [{ interval: "100ms", timeout: 3600, grace_period: "0s" }, undefined],
  ])("with the times %j", (times, message) => {
    expect(checkTimeRefusal(times)?.message).toBe(message);
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

  test("a check that does not pass runs often, one that does runs at its interval", () => {
    expect(nextCheckMs(check(), result("passing"))).toBe(60_000);
    expect(nextCheckMs(check(), result("warning"))).toBe(250);
    expect(nextCheckMs(check({ intervalMs: 100 }), result("critical"))).toBe(100);
  });

  test("a machine is healthy if all its checks pass; a check that has not run does not pass", () => {
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

describe("a probe", () => {
  test("over HTTP sends method, path and headers; 2xx passes, anything else is reported", async () => {
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

  test("fails on a closed port, and on one that does not respond", async () => {
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
      output: "no response within 50 ms",
    });
    expect(await probe("127.0.0.1", check({ type: "tcp", port: silent }), never)).toMatchObject({ passed: true });
  });
});

describe("the runner", () => {
  const CHECKED = "m";

  /** Machines whose records the test changes, and the runner of their checks. */
  function runnerOf(...records: Partial<MachineRecord>[]) {
    const changes = new MachineChanges();
    const whole = records.map(
      (record) => ({ id: CHECKED, address: "127.0.0.1", lastBoot: null, ...record }) as MachineRecord,
    );
    const machines: Pick<Machines, "all" | "subscribe"> = {
      subscribe: (phase, listener) => changes.subscribe(phase, listener),
      all: () => whole.map((record) => ({ record }) as MachineView),
    };
    const results = new CheckResults();
    const runner = new CheckRunner(machines, results);
    onTestFinished(() => runner.close());
    const become = (state: MachineRecord["state"], more: Partial<MachineRecord> = {}) =>
      changes.publish(Object.assign(whole[0] as MachineRecord, { state }, more));
    return { runner, results, become };
  }

  /** A machine's configuration with an HTTP check as often as is accepted, and how often that ran. */
  async function counted() {
    const probes = { count: 0 };
    const { port } = await serving((_request, response) => response.end(String((probes.count += 1))));
    return { probes, config: { image: "x", checks: { web: { type: "http" as const, port, interval: "100ms" } } } };
  }

  test("a machine is checked while it is running, and never while it sleeps", async () => {
    const [checked, other] = [await counted(), await counted()];
    const { runner, results, become } = runnerOf(
      { state: "running", config: checked.config },
      { id: "other", state: "running", config: other.config },
    );
    expect(runner.isHealthy(CHECKED)).toBe(false);
    await expect.poll(() => runner.isHealthy(CHECKED)).toBe(true);
    expect(results.of(CHECKED)).toMatchObject([
      { name: "web", status: "passing", output: expect.stringMatching(/200/) },
    ]);
    become("suspended");
    expect(results.of(CHECKED)).toEqual([]);
    // A machine that keeps running, with the same interval, tells the time. One probe may already have been sent.
    const before = { checked: checked.probes.count, other: other.probes.count };
    await expect.poll(() => other.probes.count, { timeout: 5000 }).toBeGreaterThan(before.other + 5);
    expect(checked.probes.count).toBeLessThanOrEqual(before.checked + 1);
  });

  test("a machine that resumes is as healthy as it was, at once; one that starts cold has to show it", () => {
    const config = { image: "x", checks: { web: { type: "tcp" as const, port: 1 } } };
    const { runner, become } = runnerOf({ state: "suspended", config });
    become("running", { lastBoot: { kind: "resume", reason: "", at: "", duration_ms: 1 } });
    expect(runner.isHealthy(CHECKED)).toBe(true);
    become("stopped");
    become("running", { lastBoot: { kind: "cold", reason: "", at: "", duration_ms: 1 } });
    expect(runner.isHealthy(CHECKED)).toBe(false);
  });

  test("subscribers hear of a change of health once", async () => {
    let ill = false;
    const { port } = await serving((_request, response) => response.writeHead(ill ? 500 : 200).end());
    const config = { image: "x", checks: { web: { type: "http" as const, port, interval: "100ms" } } };
    const { runner } = runnerOf({ state: "running", config });
    const told: boolean[] = [];
    runner.subscribe((id) => told.push(runner.isHealthy(id)));
    await expect.poll(() => told).toEqual([true]);
    ill = true;
    await expect.poll(() => told).toEqual([true, false]);
  });
});

describe("checks that have to pass once", () => {
  const machine = (port: number) => ({
    address: "127.0.0.1",
    config: { image: "x", checks: { web: { type: "http" as const, port }, open: { type: "tcp" as const, port } } },
  });

  test("are tried until they do", async () => {
    let asked = 0;
    const server = createServer((_, response) => void response.writeHead((asked += 1) < 3 ? 503 : 200).end()).listen(0);
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    expect(await passOnce(machine(port), AbortSignal.timeout(10_000))).toBeUndefined();
    expect(asked).toBe(3);
    expect(await passOnce({ address: "127.0.0.1", config: { image: "x" } }, AbortSignal.abort())).toBeUndefined();
  });

  test("say what is wrong once the time is over", async () => {
    const tried = new AbortController();
    let asked = 0;
    const server = createServer((_, response) => {
      asked += 1;
      if (asked === 2) tried.abort();
      response.writeHead(503).end("no database");
    }).listen(0);
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    expect(await passOnce(machine(port), tried.signal)).toBe("its check web does not pass: 503 no database");
  });
});
