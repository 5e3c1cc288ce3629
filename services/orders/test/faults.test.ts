/** What clients see when the storage fails in ways that a healthy database never does. */
import { expect, onTestFinished, test } from "vitest";
import { DatabaseUnavailableError, StillReferencedError, type Storage, UnknownSupplierError } from "../src/storage.ts";
import { openTestApp } from "./behaviour/world.ts";

/** A storage whose calls all fail with the same error. */
function failing(error: Error): Storage {
  const fail = async () => {
    throw error;
  };
  return new Proxy({} as Storage, { get: () => fail });
}

async function deleteWith(error: Error) {
  const api = await openTestApp(failing(error));
  onTestFinished(api.close);
  return { ...(await api.call("DELETE", "/orders/1")), logged: api.logged };
}

test("a row that others refer to is a 409, and the log says what refers to it", async () => {
  const { status, body, logged } = await deleteWith(new StillReferencedError("invoices refer to it"));
  expect({ status, code: body.code }).toEqual({ status: 409, code: "still_referenced" });
  expect(logged).toMatchObject([{ level: 30, method: "DELETE", url: "/orders/1", reason: "invoices refer to it" }]);
});

test("an unknown supplier is a 422", async () => {
  const { status, body } = await deleteWith(new UnknownSupplierError([], new Set()));
  expect({ status, code: body.code }).toEqual({ status: 422, code: "unknown_supplier" });
});

test("an unavailable database is a 503 with Retry-After, and is logged", async () => {
  const { status, headers, body, logged } = await deleteWith(new DatabaseUnavailableError("gone"));
  expect({ status, code: body.code }).toEqual({ status: 503, code: "database_unavailable" });
  expect(headers["retry-after"]).toBe("1");
  expect(logged).toMatchObject([{ level: 40, method: "DELETE", url: "/orders/1" }]);
});

test("a fault of the service is logged with its stack and not shown", async () => {
  const { status, body, logged } = await deleteWith(new Error("the secret is 42"));
  expect({ status, code: body.code }).toEqual({ status: 500, code: "internal_error" });
  expect(JSON.stringify(body)).not.toContain("42");
  expect(logged).toMatchObject([{ level: 50, err: { message: "the secret is 42", stack: expect.any(String) } }]);
});
