// The decisions, without a database.
import { describe, expect, test } from "vitest";
import { JumpWatch } from "../../src/postgres/clock.ts";
import { CannotConnectError, faultOf, sqlState } from "../../src/postgres/faults.ts";
import { literally } from "../../src/postgres/reads.ts";
import { retryOnce } from "../../src/postgres/retry.ts";
import { verdictOn, type XactStatus } from "../../src/postgres/settle.ts";
import { DatabaseUnavailableError } from "../../src/storage.ts";

const withCode = (code: string) => Object.assign(new Error("from the driver"), { code });

describe("faultOf", () => {
  test.each(["ECONNRESET", "EPIPE", "ECONNREFUSED", "ETIMEDOUT", "57P01", "57P02", "57P03", "57P05", "08006", "08P01"])(
    "%s is the connection's",
    (code) => {
      expect(faultOf(withCode(code))).toBe("connection");
      expect(faultOf(new Error("wrapped by the ORM", { cause: withCode(code) }))).toBe("connection");
    },
  );

  test.each([
    "Connection terminated",
    "Connection terminated unexpectedly",
    "Connection terminated due to connection timeout",
    "Client has encountered a connection error and is not queryable",
    "Query read timeout",
    "timeout expired",
  ])("the driver's message is, too: %s", (message) => expect(faultOf(new Error(message))).toBe("connection"));

  test.each(["40001", "40P01", "53300", "55P03", "57014", "58030", "25006", "26000"])("%s is operational", (code) => {
    expect(faultOf(withCode(code))).toBe("operational");
  });

  test.each(["23503", "23505", "22P02", "42601", "ERR_ASSERTION"])("%s is a fault of the statement", (code) => {
    expect(faultOf(withCode(code))).toBeUndefined();
  });

  test("any failure to connect counts, and a value that is not an error does not", () => {
    expect(faultOf(new CannotConnectError("", { cause: withCode("28P01") }))).toBe("connection");
    expect(faultOf("ECONNRESET")).toBeUndefined();
    expect(faultOf(new Error("a supplier called Connection terminated"))).toBeUndefined();
  });

  test("a state is found below the ORM's error, and a socket's code is not a state", () => {
    expect(sqlState(new Error("outer", { cause: withCode("23503") }))).toBe("23503");
    expect(sqlState(withCode("EPIPE"))).toBe(undefined);
  });
});

describe("retryOnce", () => {
  const attempts = (...outcomes: (Error | string)[]) => {
    let calls = 0;
    const run = retryOnce(async () => {
      const outcome = outcomes[calls++];
      if (outcome instanceof Error) throw outcome;
      return outcome;
    });
    return run.then(
      (result) => ({ calls, result }),
      (error: unknown) => ({ calls, error }),
    );
  };

  test("succeeds after one fault", async () => {
    expect(await attempts("done")).toEqual({ calls: 1, result: "done" });
    expect(await attempts(withCode("57P01"), "done")).toEqual({ calls: 2, result: "done" });
  });

  test("never tries a third time, or again after a refusal", async () => {
    const twice = await attempts(withCode("57P01"), withCode("EPIPE"), "never");
    expect(twice).toMatchObject({ calls: 2, error: { name: "DatabaseUnavailableError", cause: { code: "EPIPE" } } });
    expect(await attempts(withCode("23503"), "never")).toMatchObject({ calls: 1, error: { code: "23503" } });
    const lastWord = new DatabaseUnavailableError("not known whether it was saved", { cause: withCode("EPIPE") });
    expect(await attempts(lastWord, "never")).toEqual({ calls: 1, error: lastWord });
  });
});

describe("verdictOn", () => {
  test.each<[XactStatus, string, string]>([
    ["committed", "committed", "unknown"],
    ["aborted", "aborted", "aborted"],
    ["in progress", "pending", "aborted"],
    ["future", "unknown", "aborted"],
    [null, "unknown", "unknown"],
  ])("%s: %s, after a crash %s", (status, expected, afterCrash) => {
    expect(verdictOn(status, false)).toBe(expected);
    expect(verdictOn(status, true)).toBe(afterCrash);
  });
});

test("a jump is reported once, and a slow clock is not a jump", () => {
  let wall = 1_000_000;
  let steady = 50;
  const watch = new JumpWatch({ wall: () => wall, steady: () => steady });
  wall += 60_000;
  steady += 60_010;
  expect(watch.jumped()).toBe(false);
  wall += 3_600_000;
  expect([watch.jumped(), watch.jumped()]).toEqual([true, false]);
  wall -= 5000;
  expect(watch.jumped()).toBe(true);
});

test("LIKE's special characters stand for themselves", () => {
  expect(literally(String.raw`50%_\x`)).toBe(String.raw`50\%\_\\x`);
});
