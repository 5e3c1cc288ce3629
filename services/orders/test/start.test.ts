/** The service with a PostgreSQL that starts later, or never. */
import { once } from "node:events";
import { createServer } from "node:net";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { type Access, startTestServer } from "./postgres/server.ts";
import { finished, heard, listening, run } from "./process.ts";

/** Loading the service takes a second or two on a busy machine. */
const TEST_LIMIT_MS = 60_000;

const server = await startTestServer();
afterAll(() => server.remove());
const access = await server.newDatabase();

function serve({ host, port, user, password, database }: Access, env: Record<string, string> = {}) {
  const db = { DB_HOST: host, DB_PORT: `${port}`, DB_USER: user, DB_PASSWORD: password, DB_NAME: database };
  return run("main.ts", { ...db, ...env });
}

test("starts when its database does", { timeout: TEST_LIMIT_MS }, async () => {
  await server.stop();
  const child = serve(access);
  const [, said] = await heard(child.stdout, /"msg":"(Waiting[^"]+)"/);
  expect(said).toBe(
    `Waiting up to 30 s for PostgreSQL at 127.0.0.1:${access.port}: connect ECONNREFUSED 127.0.0.1:${access.port}`,
  );
  await server.start();
  const { url } = await listening(child);
  expect((await fetch(`${url}/health`)).status).toBe(200);
});

test("fails in time, with a sentence, exit code 1 and no stack", { timeout: TEST_LIMIT_MS }, async () => {
  const { code, output, errors, ms } = await finished(serve({ ...access, port: 1 }, { DB_START_TIMEOUT_MS: "1000" }));
  expect(code).toBe(1);
  expect(output).toContain("Waiting up to 1 s for PostgreSQL at 127.0.0.1:1: connect ECONNREFUSED 127.0.0.1:1");
  expect(errors).toBe(
    "orders could not start: PostgreSQL at 127.0.0.1:1 does not answer, also after 1 s: connect ECONNREFUSED 127.0.0.1:1\n",
  );
  expect(ms).toBeLessThan(15_000);
});

test("a server that accepts connections but does not answer takes no longer", {
  tags: "again",
  timeout: TEST_LIMIT_MS,
}, async () => {
  const silent = createServer().listen(0, "127.0.0.1");
  await once(silent, "listening");
  onTestFinished(() => void silent.close());
  const { port } = silent.address() as { port: number };
  const patience = { DB_TIMEOUT_MS: "60000", DB_START_TIMEOUT_MS: "1000" };
  const { code, errors, ms } = await finished(serve({ ...access, port }, patience));
  expect(code).toBe(1);
  expect(errors).toMatch(/does not answer, also after 1 s: .*\n$/);
  expect(ms).toBeLessThan(15_000);
});

test("the start does not wait when the password is wrong", { tags: "again", timeout: TEST_LIMIT_MS }, async () => {
  const { code, errors, ms } = await finished(serve({ ...access, password: "wrong" }));
  expect(code).toBe(1);
  expect(errors).toMatch(/^.*refuses the connection: password authentication failed for user "orders"\n$/);
  expect(ms).toBeLessThan(15_000);
});

test("a service that is waiting stops at once on a signal", { tags: "again", timeout: TEST_LIMIT_MS }, async () => {
  const child = serve({ ...access, port: 1 });
  await heard(child.stdout, /Waiting/);
  child.kill("SIGTERM");
  expect(await once(child, "exit")).toEqual([0, null]);
});
