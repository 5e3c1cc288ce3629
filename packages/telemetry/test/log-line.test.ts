import { HibernautError } from "@hibernaut/domain/errors";
import { expect, test } from "vitest";
import { errorFields } from "../src/log.ts";
import { readableLine } from "../src/log-line.ts";

const time = "2026-11-22T10:00:00.000Z";
/** The line without its time, which is that of the host. */
const read = (fields: object, colours = false) => {
  const [first = "", ...rest] = readableLine(`${JSON.stringify({ level: 30, time, ...fields })}\n`, colours).split(
    "\n",
  );
  return [first.replace(/\d\d:\d\d:\d\d/, "10:00:00"), ...rest].join("\n");
};

test("a line has time, level, message, and the fields that are not in the message", () => {
  const move = { machine: "3f9c", app: "shop", event: "started", from: "starting", to: "running", duration_ms: 5100 };
  expect(read({ ...move, msg: "starting -> running" })).toBe(
    "10:00:00 info  starting -> running  machine=3f9c app=shop event=started duration_ms=5100\n",
  );
  expect(read({ apiUrl: "http://127.0.0.1:4280", dataDir: "/my data", msg: "serves at http://127.0.0.1:4280" })).toBe(
    '10:00:00 info  serves at http://127.0.0.1:4280  dataDir="/my data"\n',
  );
  expect(readableLine("no JSON\n", false)).toBe("no JSON\n");
});

test("a request is one short sentence", () => {
  const request = {
    ...{ request_id: "r", method: "GET", host: "shop.localhost", target: "/?q=tea", protocol: "HTTP/1.1" },
    ...{ client: "127.0.0.1", status: 200, bytes_in: 0, bytes_out: 120, duration_ms: 573, wake: "resume" },
    ...{ wake_ms: 378, app: "shop", machine: "3f9c", error: null, msg: "request" },
  };
  expect(read(request)).toBe(
    "10:00:00 info  GET shop.localhost/?q=tea: 200 after 573 ms, of which 378 ms to wake the machine  wake=resume machine=3f9c\n",
  );
  expect(read({ ...request, status: null, wake: "running", machine: null, error: "client_gone" })).toBe(
    "10:00:00 info  GET shop.localhost/?q=tea: no answer after 573 ms  error=client_gone\n",
  );
});

test("an error has its stack, and a warning does not", () => {
  const err = { type: "Error", message: "it broke", stack: "Error: it broke\n    at work (/srv/a.ts:1:2)" };
  expect(read({ level: 50, err, msg: "a request failed" })).toBe(
    "10:00:00 error a request failed: it broke\n    at work (/srv/a.ts:1:2)\n",
  );
  expect(read({ level: 40, err, msg: "the proxy met a fault" })).toBe(
    "10:00:00 warn  the proxy met a fault: it broke\n",
  );
});

test("an error of the host or its disk has no stack, which would say nothing, again and again", () => {
  const full = Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
  expect(errorFields(full)).toEqual({ type: "Error", message: full.message, code: "ENOSPC" });
  const database = new HibernautError("unavailable", "The platform cannot write its database.");
  expect(errorFields(database)).toEqual({ type: "HibernautError", message: database.message, code: "unavailable" });
  expect(errorFields(new TypeError("a fault of ours"))).toMatchObject({ stack: expect.stringContaining("at ") });
});

test("what clients send cannot control the terminal", () => {
  const line = read({ method: "GET", host: "x", target: "/\u001b[2J\r\u009b1m", duration_ms: 1, status: 404 });
  expect(line).toBe("10:00:00 info  GET x/\\x1b[2J\\x0d\\x9b1m: 404 after 1 ms\n");
  expect(read({ reason: "\u001b]0;me\u0007", msg: "it\u001b[1m" })).not.toMatch(/\u001b|\u0007/u);
});

test("the level is colored where colors are allowed", () => {
  expect(read({ level: 40, msg: "careful" }, true)).toContain("\u001b[33mwarn \u001b[39m careful");
});
