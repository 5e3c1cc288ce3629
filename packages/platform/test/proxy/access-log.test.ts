import { expect, test } from "vitest";
import { accessLine } from "../../src/proxy/access-log.ts";
import type { AccessEntry } from "../../src/proxy/contract.ts";

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
