import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test, vi } from "vitest";
import { accessLine } from "../src/access-log.ts";
import type { AccessEntry } from "../src/contract.ts";

const ENTRY: AccessEntry = {
  ...{ time: Date.parse("2026-11-21T10:00:00.000Z"), requestId: "r-1", method: "GET", host: "shop.test" },
  ...{ target: "/", httpVersion: "1.1", clientAddress: "127.0.0.1", status: 200, bytesIn: 0, bytesOut: 100 },
  ...{ durationMs: 12.4, wake: { kind: "resume", durationMs: 9 }, machineId: "m1", appName: "shop", error: undefined },
};

test("a line of the access log is JSON, with the time at which the request ended", () => {
  expect(JSON.parse(accessLine(ENTRY))).toEqual({
    ...{
      level: 30,
      time: "2026-11-21T10:00:00.012Z",
      request_id: "r-1",
      method: "GET",
      host: "shop.test",
      target: "/",
    },
    ...{ protocol: "HTTP/1.1", client: "127.0.0.1", status: 200, bytes_in: 0, bytes_out: 100, duration_ms: 12 },
    ...{ wake: "resume", wake_ms: 9, app: "shop", machine: "m1", error: null, msg: "request" },
  });
  expect(accessLine(ENTRY)).toMatch(/^[^\n]+\n$/);
});

test.each(['/"', "/\\", '/?q="},{"level":60', "/\n", "/\u0000", "/\u00e9\ud800", "/\u2028"])(
  "no target can break out of its line: %j",
  (target) => {
    const line = accessLine({ ...ENTRY, target });
    expect((JSON.parse(line) as { target: string }).target).toBe(target);
    expect(line.indexOf("\n")).toBe(line.length - 1);
  },
);

test("what is not known is null", () => {
  const unknown = {
    status: undefined,
    wake: undefined,
    machineId: undefined,
    appName: undefined,
    error: "client_gone",
  };
  expect(JSON.parse(accessLine({ ...ENTRY, ...unknown }))).toMatchObject({
    ...{ status: null, wake: null, wake_ms: null, app: null, machine: null, error: "client_gone" },
  });
});

test("a line tells its own request, however little it differs from the one before", () => {
  const differences: Partial<AccessEntry>[] = [
    ...[
      {},
      { target: "/2" },
      { host: "other.test" },
      { method: "PUT" },
      { clientAddress: "::1" },
      { httpVersion: "1.0" },
    ],
    ...[
      { wake: undefined },
      { machineId: "m2" },
      { appName: "other" },
      { error: "upstream_broke" },
      { requestId: "r-2" },
    ],
    ...[{ status: 404 }, { bytesIn: 7 }, { bytesOut: 8 }, { durationMs: 2000 }, {}],
  ];
  for (const difference of differences) {
    const entry = { ...ENTRY, ...difference };
    expect(JSON.parse(accessLine(entry))).toMatchObject({
      ...{ request_id: entry.requestId, method: entry.method, host: entry.host, target: entry.target },
      ...{ protocol: `HTTP/${entry.httpVersion}`, client: entry.clientAddress, status: entry.status },
      ...{ bytes_in: entry.bytesIn, bytes_out: entry.bytesOut, duration_ms: Math.round(entry.durationMs) },
      ...{ wake: entry.wake?.kind ?? null, app: entry.appName, machine: entry.machineId, error: entry.error ?? null },
    });
  }
});

test("the first line may be about a connection of which nothing is known", async () => {
  vi.resetModules();
  const { accessLine: first } = await import("../src/access-log.ts");
  const nothing = { method: "", host: "", target: "", httpVersion: "", clientAddress: "" };
  const line = first({ ...ENTRY, ...nothing, wake: undefined, machineId: "", appName: "", error: "" });
  expect(JSON.parse(line)).toMatchObject({ method: "", client: "", protocol: "HTTP/", machine: "", msg: "request" });
});

test("every line reaches stderr, in order, however many there are and whatever is in them", async () => {
  const program = join(import.meta.dirname, "access-lines.ts");
  const { stderr } = await promisify(execFile)(process.execPath, [program, "2000"], { maxBuffer: 16 * 1024 * 1024 });
  const lines = stderr
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as { request_id: string; target: string });
  expect(lines).toHaveLength(2000);
  for (const [number, { request_id: id, target }] of lines.entries())
    expect({ id, target }).toEqual({ id: `r-${number}`, target: `/caf\u00e9/${number}` });
});
