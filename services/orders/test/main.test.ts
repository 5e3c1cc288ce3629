/** The process: start, signals, errors. */
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { expect, test } from "vitest";
import { finished, listening, run } from "./process.ts";
import { tempFolder } from "./sqlite-world.ts";

test.each(["SIGTERM", "SIGINT"] as const)(
  "%s lets an open request finish, then ends",
  { timeout: 30_000 },
  async (signal) => {
    await using folder = await tempFolder();
    const child = run("main.ts", { ORDERS_SQLITE_PATH: join(folder.path, "orders.db") });
    const { url, log } = await listening(child);
    expect(log.trim().split("\n"), "logged once").toHaveLength(1);
    const done = finished(child);
    const headers = { "content-type": "application/json", expect: "100-continue" };
    const open = request(`${url}/suppliers`, { method: "POST", headers });
    const answered = once(open, "response") as Promise<[IncomingMessage]>;
    open.flushHeaders();
    await once(open, "continue"); // the service has the request
    open.write('[{"companyName":"s",');
    child.kill(signal);
    const health = () =>
      fetch(`${url}/health`).then(
        ({ status }) => `${status}`,
        () => "refused",
      );
    await expect.poll(health, { timeout: 10_000, interval: 10 }).toBe("refused");
    const released = Date.now();
    open.end('"country":"c"}]');
    expect((await answered)[0].resume().statusCode).toBe(201);
    expect(await done).toMatchObject({ code: 0, errors: "" });
    // It does not wait for idle connections.
    expect(Date.now() - released).toBeLessThan(3000);
  },
);

test("an invalid setting is named, and nothing starts", async () => {
  expect(await finished(run("main.ts", { PORT: "many" }))).toMatchObject({
    code: 2,
    output: "",
    errors: "PORT must be a number from 0 to 65535.\n",
  });
});

test("a port in use ends the start with a sentence", async () => {
  await using folder = await tempFolder();
  const ORDERS_SQLITE_PATH = join(folder.path, "orders.db");
  const first = run("main.ts", { ORDERS_SQLITE_PATH });
  const { port } = new URL((await listening(first)).url);
  const { code, errors } = await finished(run("main.ts", { PORT: port, ORDERS_SQLITE_PATH }));
  expect({ code, errors }).toEqual({ code: 1, errors: expect.stringContaining("EADDRINUSE") });
});

test("the seed command fills the database, and the service serves it", async () => {
  await using folder = await tempFolder();
  const env = { ORDERS_SQLITE_PATH: join(folder.path, "orders.db") };
  expect(await finished(run("seed/main.ts", env, "--size", "small"))).toMatchObject({
    code: 0,
    output: expect.stringMatching(/^3\d{3} rows in SQLite /),
    errors: expect.stringContaining("100%"),
  });
  const again = await finished(run("seed/main.ts", env));
  expect(again).toMatchObject({ code: 1, errors: expect.stringContaining("--force") });
  expect(await finished(run("seed/main.ts", env, "--size", "huge"))).toMatchObject({ code: 2 });
  expect(await finished(run("seed/main.ts", env, "--nonsense"))).toMatchObject({ code: 2 });
  const { url } = await listening(run("main.ts", env));
  expect(await (await fetch(`${url}/products?limit=1`)).json()).toMatchObject({ total: 80 });
  expect(await (await fetch(`${url}/metrics`)).text()).toContain('route="/products",status="200"');
});
