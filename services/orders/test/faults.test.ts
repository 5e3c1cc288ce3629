/** What clients see when the service itself has a fault. */
import { expect, onTestFinished, test } from "vitest";
import type { Storage } from "../src/storage.ts";
import { openTestApp } from "./behaviour/world.ts";

test("a fault of the service is logged with its stack and not shown", async () => {
  const fail = () => Promise.reject(new Error("the secret is 42"));
  const api = await openTestApp(new Proxy({} as Storage, { get: () => fail }));
  onTestFinished(api.close);
  const { status, body } = await api.call("DELETE", "/orders/1");
  expect({ status, code: body.code }).toEqual({ status: 500, code: "internal_error" });
  expect(JSON.stringify(body)).not.toContain("42");
  expect(api.logged).toMatchObject([{ level: 50, err: { message: "the secret is 42", stack: expect.any(String) } }]);
});
