/** Connections to the port for joining, which anybody can open. */
import { PassThrough } from "node:stream";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Admission } from "../src/admission.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function admission(): Admission {
  const unused = {} as never;
  return new Admission({
    ...{ directory: unused, home: unused, view: unused, version: "0.1.0" },
    secretsKey: () => Buffer.alloc(32),
    log: { info() {}, warn() {} },
  });
}

function silent(count: number): PassThrough[] {
  return Array.from({ length: count }, () => new PassThrough());
}

const open = (sockets: PassThrough[]) => sockets.filter(({ destroyed }) => !destroyed).length;

it("keeps a few silent connections, for a short time", () => {
  const port = admission();
  const sockets = silent(40);
  for (const socket of sockets) port.accept(socket);
  expect(open(sockets)).toBe(32);
  vi.advanceTimersByTime(20_000);
  expect(open(sockets)).toBe(0);
});

it("closes all connections when the host stops", () => {
  const port = admission();
  const sockets = silent(3);
  for (const socket of sockets) port.accept(socket);
  port.close();
  expect(open(sockets)).toBe(0);
});
