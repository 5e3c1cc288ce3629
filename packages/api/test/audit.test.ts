import { once } from "node:events";
import { appendFileSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import { temporaryFolder } from "../../store/test/helpers.ts";
import type { AuditEntry } from "../src/audit/entry.ts";
import { AuditLog } from "../src/audit/log.ts";
import { createToken } from "../src/tokens.ts";
import { as, testApi } from "./helpers.ts";

async function audited() {
  const folder = join(temporaryFolder(), "audit");
  const faults: unknown[] = [];
  const audit = new AuditLog({ folder, maxBytes: 1024 * 1024, onFault: (error) => faults.push(error) });
  onTestFinished(() => audit.close());
  const { server, call } = await testApi({ audit }, { apps: [] });
  const file = join(folder, "audit.jsonl");
  const lines = () =>
    readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as AuditEntry);
  await call("POST", "/v1/apps", { app_name: "shop" });
  return { server, call, audit, folder, file, lines, faults };
}

const entry = (more: Partial<AuditEntry> = {}): AuditEntry => ({
  at: new Date().toISOString(),
  phase: "begin",
  request_id: "r",
  token: { id: "t1", name: "ci" },
  from: "127.0.0.1",
  method: "POST",
  route: "/v1/apps",
  app: null,
  target: {},
  status: null,
  ...more,
});

test("a change has a line before it and one after it; reading has none", async () => {
  const { call, lines, file, server } = await audited();
  const [begin, end] = lines();
  const { id } = server.tokens.list()[0] ?? {};
  const what = { token: { id, name: "test" }, method: "POST", route: "/v1/apps", app: "shop", from: "127.0.0.1" };
  expect(begin).toMatchObject({ ...what, phase: "begin", status: null });
  expect(end).toMatchObject({ ...what, phase: "end", status: 201, request_id: begin?.request_id });
  await call("GET", "/v1/apps");
  await call("POST", "/v1/apps", { nonsense: 1 });
  expect(lines()).toHaveLength(2);
  await call("DELETE", "/v1/apps/shop/hostnames/none.example.com");
  expect(lines().slice(2)).toMatchObject([
    { phase: "begin", app: "shop", target: { hostname: "none.example.com" } },
    { phase: "end", status: 404 },
  ]);
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

test("what a token may not do is there, too, and what someone without a token sends is not", async () => {
  const { call, lines, server } = await audited();
  const { token } = createToken(server.tokens, "reader", { scopes: ["read"] });
  for (const shown of [token, "wrong"]) await call("POST", "/v1/apps", { app_name: "more" }, as(shown));
  expect(lines().slice(2)).toMatchObject([{ phase: "refused", token: { name: "reader" }, status: 403 }]);
});

test("neither secrets, commands, files, environments nor passwords are ever in it", { timeout: 120_000 }, async () => {
  const { call, server, folder } = await audited();
  const { body } = await call("POST", "/v1/apps/shop/machines", { config: { image: "x" } });
  const machine = `/v1/apps/shop/machines/${body.id}`;
  const sent: string[] = [];
  const hidden = fc.string({ minLength: 6, maxLength: 40 }).map((text) => `s3cret${text}s3cret`);
  const requests = (value: string): [string, string, unknown][] => [
    ["POST", "/v1/apps/shop/secrets", { secrets: { KEY: value } }],
    ["POST", `${machine}/exec`, { command: ["sh", "-c", value], stdin: value, env: { A: value }, timeout: 1 }],
    ["POST", "/v1/apps/shop/machines", { config: { image: "x", env: { A: value }, init: { cmd: [value] } } }],
    ["POST", machine, { config: { image: "x", files: [{ guest_path: "/a", raw_value: btoa("x"), [value]: 1 }] } }],
    ["PUT", "/v1/registries/example.com", { username: "me", password: value }],
    ["POST", "/v1/images/pull", { ref: `me:${encodeURIComponent(value)}@example.com/app` }],
    ["PUT", `${machine}/archive?path=/tmp`, value],
    ["POST", "/v1/apps", { app_name: "other", [value]: value }],
    ["POST", "/v1/apps/shop/releases", { image: "x", description: value }],
    ["POST", `${machine}/start`, { reason: value }],
  ];
  await fc.assert(
    fc.asyncProperty(hidden, fc.nat(9), async (value, which) => {
      const [method, path, content] = requests(value)[which] ?? ["GET", "/v1/apps", undefined];
      sent.push(value, encodeURIComponent(value));
      await call(method, path, content);
    }),
    { numRuns: 150 },
  );
  const url = `${server.url.replace("http", "ws")}${machine}/exec?command=s3cret-command`;
  const socket = new WebSocket(url, as(server.token));
  await Promise.race([once(socket, "open"), once(socket, "unexpected-response"), once(socket, "error")]);
  socket.terminate();
  const all = readdirSync(folder)
    .map((name) => readFileSync(join(folder, name), "utf8"))
    .join("");
  expect(all).toContain('"route":"/v1/apps/:app_name/machines/:machine_id/exec"');
  for (const value of sent) expect(all).not.toContain(value);
  expect(all).not.toContain("s3cret");
  expect(all).not.toContain(server.token);
});

test("a line that cannot be written is told, and nothing is changed without it, except for deletions", async () => {
  const { call, file, server } = await audited();
  rmSync(file);
  // What cannot be appended to, for root either.
  mkdirSync(file);
  const refused = await call("POST", "/v1/apps", { app_name: "more" });
  expect(refused).toMatchObject({
    status: 503,
    body: { error: "unavailable", message: expect.stringContaining("audit") },
  });
  expect((await call("GET", "/v1/apps/more")).status).toBe(404);
  expect((await call("DELETE", "/v1/apps/shop")).status).toBe(200);
  const told = server.logged.filter(({ msg }) => String(msg).includes("audit log could not be written"));
  expect(told.map(({ audit }) => (audit as AuditEntry).method)).toEqual(["POST", "DELETE"]);
  server.logged.length = 0;
});

test("it takes no more than its size, and loses the oldest lines first", async () => {
  const folder = join(temporaryFolder(), "audit");
  const log = new AuditLog({ folder, maxBytes: 20_000, onFault: (error) => expect.fail(String(error)) });
  for (let count = 0; count < 500; count += 1) log.append(entry({ request_id: `r${count}` }));
  await log.close();
  const names = readdirSync(folder);
  expect(names).toHaveLength(4);
  expect(names.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0)).toBeLessThanOrEqual(20_000);
  const kept = await read(log);
  expect(kept.at(-1)?.request_id).toBe("r499");
  expect(kept.length).toBeGreaterThan(50);
  const numbers = kept.map(({ request_id }) => Number(request_id.slice(1)));
  expect(numbers).toEqual(Array.from(kept, (_, index) => 500 - kept.length + index));
});

async function read(log: AuditLog, more: { app?: string; token?: string; sinceMs?: number; limit?: number } = {}) {
  const signal = new AbortController().signal;
  return (await Array.fromAsync(log.read({ limit: 10_000, follow: false, signal, ...more }))).flat();
}

test("it is filtered, survives a torn line, and is followed", async () => {
  const { call, server, audit, file } = await audited();
  const init = as(createToken(server.tokens, "ci").token);
  await call("POST", "/v1/apps", { app_name: "bank" }, init);
  appendFileSync(file, '{"at":"2026-\n');
  expect((await read(audit)).map(({ app }) => app)).toEqual(["shop", "shop", "bank", "bank"]);
  expect((await call("GET", "/v1/audit?app=bank")).body).toHaveLength(2);
  expect((await call("GET", "/v1/audit?token=ci&limit=1")).body).toMatchObject([{ app: "bank", phase: "end" }]);
  expect((await call("GET", "/v1/audit?since=2126-01-01T00:00:00Z")).body).toEqual([]);
  // The line that there is opens the reply.
  const following = await fetch(`${server.url}/v1/audit?follow=1&limit=1`, as(server.token));
  await call("DELETE", "/v1/apps/bank", undefined, init);
  const methods: string[] = [];
  const decoder = new TextDecoder();
  for await (const chunk of following.body ?? []) {
    const lines = decoder.decode(chunk).split("\n");
    for (const line of lines) if (line !== "") methods.push((JSON.parse(line) as AuditEntry).method);
    if (methods.length >= 3) break;
  }
  expect(methods).toEqual(["POST", "DELETE", "DELETE"]);
});
