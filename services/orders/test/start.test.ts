/** The service with a PostgreSQL that starts later, or never. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type Access, startTestServer, type TestServer } from "./postgres/server.ts";

const MAIN = join(import.meta.dirname, "../src/main.ts");
/** Loading the service takes a second or two on a busy machine. */
const TEST_LIMIT_MS = 60_000;

let server: TestServer;
let access: Access;
beforeAll(async () => {
  server = await startTestServer();
  access = await server.newDatabase();
}, 60_000);
afterAll(() => server?.remove());

function serve({ host, port, user, password, database }: Access, env: Record<string, string> = {}): ChildProcess {
  const db = { DB_HOST: host, DB_PORT: `${port}`, DB_USER: user, DB_PASSWORD: password, DB_NAME: database };
  const child = spawn(process.execPath, [MAIN], {
    env: { PATH: process.env.PATH, PORT: "0", ...db, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

/** Waits until a stream matches, and returns the match. */
async function heard(stream: Readable | null, pattern: RegExp): Promise<RegExpExecArray> {
  let all = "";
  for await (const chunk of stream?.iterator({ destroyOnReturn: false }) ?? []) {
    all += String(chunk);
    const found = pattern.exec(all);
    if (found) return found;
  }
  throw new Error(`never heard ${pattern}, but: ${all}`);
}

/** How a service that fails to start ends: its exit code, its output, and its lifetime in milliseconds. */
async function givenUp(child: ChildProcess) {
  const began = performance.now();
  const [output, errors, [code]] = await Promise.all([
    child.stdout ? text(child.stdout) : "",
    child.stderr ? text(child.stderr) : "",
    once(child, "exit"),
  ]);
  return { code: code as number | null, output, errors, ms: performance.now() - began };
}

test("starts when its database does", { timeout: TEST_LIMIT_MS }, async () => {
  await server.stop();
  const child = serve(access);
  const [, said] = await heard(child.stdout, /"msg":"(Waiting[^"]+)"/);
  expect(said).toBe(
    `Waiting up to 30 s for PostgreSQL at 127.0.0.1:${access.port}: connect ECONNREFUSED 127.0.0.1:${access.port}`,
  );
  await server.start();
  const [, url] = await heard(child.stdout, /"url":"(http[^"]+)"/);
  expect((await fetch(`${url}/health`)).status).toBe(200);
});

test("fails in time, with a sentence, exit code 1 and no stack", { timeout: TEST_LIMIT_MS }, async () => {
  const { code, output, errors, ms } = await givenUp(serve({ ...access, port: 1 }, { DB_START_TIMEOUT_MS: "1000" }));
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
  const { code, errors, ms } = await givenUp(serve({ ...access, port }, patience));
  expect(code).toBe(1);
  expect(errors).toMatch(/does not answer, also after 1 s: .*\n$/);
  expect(ms).toBeLessThan(15_000);
});

test("the start does not wait when the password is wrong", { tags: "again", timeout: TEST_LIMIT_MS }, async () => {
  const { code, errors, ms } = await givenUp(serve({ ...access, password: "wrong" }));
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
