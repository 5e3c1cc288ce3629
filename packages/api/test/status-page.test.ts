/** The public page of an app. */
import { appStatusOf } from "@hibernaut/domain/app-status";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { beforeEach, describe, expect, test } from "vitest";
import { machineRecord } from "../../store/test/helpers.ts";
import { statusPage } from "../src/status-page.ts";
import { createToken } from "../src/tokens.ts";
import { as, type TestApi, testApi } from "./helpers.ts";
import type { Call } from "./openapi-check.ts";

let server: TestApi;
let call: Call;
beforeEach(async () => {
  ({ server, call } = await testApi());
});

const page = (app: string) => fetch(`${server.url}/status/${app}`);

test("an app has no page until its owner wants one, and nobody finds out whether it exists", async () => {
  const [off, unknown] = await Promise.all(["shop", "none"].map(page));
  expect([off?.status, unknown?.status]).toEqual([404, 404]);
  const [one, other] = (await Promise.all([off?.json(), unknown?.json()])) as Record<string, unknown>[];
  const { request_id: _one, ...known } = one ?? {};
  const { request_id: _other, ...none } = other ?? {};
  expect(JSON.stringify(known).replaceAll("shop", "none")).toBe(JSON.stringify(none));
  for (const header of ["content-security-policy", "cache-control", "content-type"])
    expect(off?.headers.get(header), header).toBe(unknown?.headers.get(header));
  expect((await call("GET", "/v1/apps/shop")).body.status_page).toBe(false);
  expect((await call("PATCH", "/v1/apps/shop", { status_page: true })).body.status_page).toBe(true);
  expect((await page("shop")).status).toBe(200);
  expect((await call("PATCH", "/v1/apps/shop", {})).body.status_page).toBe(true);
  await call("PATCH", "/v1/apps/shop", { status_page: false });
  expect((await page("shop")).status).toBe(404);
});

test("the page follows the app from up to asleep, and names nothing but the app", async () => {
  await call("PATCH", "/v1/apps/shop", { status_page: true });
  const config = { image: "x", services: [{ internal_port: 8080 }] };
  const { body } = await call("POST", "/v1/apps/shop/machines", { name: "web-secret", config });
  const machine = `/v1/apps/shop/machines/${body.id}`;
  await call("GET", `${machine}/wait?state=running`);
  const up = await page("shop");
  const text = await up.text();
  expect(text).toContain(">Up<");
  expect(text).toContain("since <time");
  for (const secret of [body.id, "web-secret", body.private_address, "image", "127.0.0.1"])
    expect(text).not.toContain(secret);
  expect(Object.fromEntries(up.headers)).toMatchObject({
    "content-type": "text/html; charset=utf-8",
    "cache-control": "public, max-age=10",
    "content-security-policy": expect.stringMatching(/^default-src 'none'; style-src 'sha256-[^']+'; base-uri 'none';/),
    "x-content-type-options": "nosniff",
  });
  expect(text).not.toMatch(/<script| on\w+=|https?:/);
  await call("POST", `${machine}/suspend`);
  await call("GET", `${machine}/wait?state=suspended`);
  expect(await (await page("shop")).text()).toContain("Asleep \u2013 wakes on request");
});

test("changing it needs a token that may deploy the app", async () => {
  const having = (scope: "read" | "deploy") =>
    as(createToken(server.tokens, scope, { scopes: [scope], apps: ["shop"] }).token);
  const body = { status_page: true };
  expect(await call("PATCH", "/v1/apps/shop", body, having("read"))).toMatchObject({ status: 403 });
  expect(await call("PATCH", "/v1/apps/shop", body, having("deploy"))).toMatchObject({ status: 200 });
  expect(await call("PATCH", "/v1/apps/none", body)).toMatchObject({ status: 404 });
  expect(await call("PATCH", "/v1/apps/shop", { status_page: "yes" })).toMatchObject({ status: 400 });
});

test("names are text, whatever they contain", () => {
  const html = statusPage('<script>alert("1")</script>&\'', { word: "up", since: "2026-01-31T14:30:05.123Z" });
  expect(html).not.toContain("<script");
  expect(html).toContain("&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;&#39;");
  expect(html).toContain("2026-01-31 14:30 UTC");
});

describe("an app is", () => {
  const at = (hour: number) => `2026-01-31T0${hour}:00:00.000Z`;
  const boot = (hour: number) => ({
    lastBoot: { kind: "cold" as const, reason: "test", at: at(hour), duration_ms: 1 },
  });
  const services = [{ internal_port: 8080 }];
  const asleep = (hour: number) => ({
    state: "suspended" as const,
    config: { image: "x", services },
    snapshot: { generation: "1", created_at: at(hour), size_bytes: 1 },
  });
  const machine = (changes: Partial<MachineRecord>, status: "healthy" | "unhealthy" | "unknown" = "unknown") => ({
    record: machineRecord({ updatedAt: at(9), ...changes }),
    health: { status },
  });
  const running = (hour: number) => machine({ state: "running", ...boot(hour) }, "healthy");

  test("up while one machine works, whatever the others do", () => {
    const machines = [machine({ state: "failed" }), running(3), running(2), machine(asleep(1))];
    expect(appStatusOf(machines)).toEqual({ word: "up", since: at(2) });
  });

  test("failing when none works that should", () => {
    expect(appStatusOf([machine({ state: "failed", updatedAt: at(4) }), machine(asleep(1))])).toEqual({
      word: "failing",
      since: at(4),
    });
    const unhealthy = machine({ state: "running", ...boot(1) }, "unhealthy");
    expect(appStatusOf([unhealthy])).toEqual({ word: "failing", since: null });
    expect(appStatusOf([machine({ state: "restarting", updatedAt: at(5) })])).toMatchObject({ word: "failing" });
  });

  test("failing for machines of hosts that are away only if no other one answers", () => {
    const away = { ...machine({ state: "failed" }), isAway: true };
    const worker = machine({ ...asleep(1), config: { image: "x" } });
    expect(appStatusOf([away])).toEqual({ word: "failing", since: null });
    expect(appStatusOf([away, worker])).toEqual({ word: "failing", since: null });
    expect(appStatusOf([away, machine(asleep(1))])).toEqual({ word: "asleep", since: at(1) });
  });

  test("asleep since the last machine fell asleep that a request wakes", () => {
    const stopped = machine({ state: "stopped", updatedAt: at(7), config: { image: "x", services } });
    expect(appStatusOf([machine(asleep(1)), stopped])).toEqual({ word: "asleep", since: at(7) });
    const worker = machine({ ...asleep(1), config: { image: "x" } });
    expect(appStatusOf([worker])).toMatchObject({ word: "stopped" });
    expect(appStatusOf([machine(asleep(1)), machine(asleep(6)), machine({ state: "stopped" })])).toEqual({
      word: "asleep",
      since: at(6),
    });
  });

  test("stopped when nothing runs and nothing is wrong; release commands do not count", () => {
    expect(appStatusOf([])).toEqual({ word: "stopped", since: null });
    expect(appStatusOf([machine({ state: "stopped", updatedAt: at(7) })])).toEqual({ word: "stopped", since: at(7) });
    expect(appStatusOf([machine({ state: "running", releaseCommand: 3, ...boot(1) })])).toMatchObject({
      word: "stopped",
    });
  });
});
