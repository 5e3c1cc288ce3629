/**
 * What pages of a tenant can do in the browser of someone who is signed in at the dashboard: a real browser, the dashboard
 * as it is built, the API over a platform on a fake host, and the tenant's app behind the proxy. Names under example.test
 * are of one site, whose servers browsers do not keep apart; without TLS they say nothing of where a request comes from.
 *
 * @module-tag again
 */
import type { IncomingMessage } from "node:http";
import { BUILT_DASHBOARD } from "@hibernaut/settings/places";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { openBrowser } from "../../platform/test/helpers/browser.ts";
import { httpApp, rig } from "../../proxy/test/http/helpers.ts";
import { startApi, type TestApi } from "./helpers.ts";
import { MORE, pathOf, startShop } from "./more-than-reads.ts";

let server: TestApi;
let browser: Browser;
let shop: Awaited<ReturnType<typeof startShop>>;
/** Requests to the API that had a cookie, of any kind. */
let withCookie: string[];

beforeAll(async () => {
  server = await startApi({ dashboard: BUILT_DASHBOARD });
  const note = ({ method, url, headers }: IncomingMessage) => {
    if (headers.cookie?.includes("hibernaut_session") === true) withCookie.push(`${method} ${url}`);
  };
  server.api.server.on("request", note).on("upgrade", note);
  shop = await startShop(server);
  browser = await openBrowser(["--host-resolver-rules=MAP *.example.test 127.0.0.1"]);
});
afterAll(async () => {
  await browser.close();
  await server.close();
});

/** In the page: asks for everything in every way that pages have, and waits until the browser is done with each. */
const ATTACK = `async ({ gets, others, sockets }) => {
  const end = (target, ...events) => new Promise((resolve) => {
    for (const event of events) target.addEventListener(event, () => resolve(event));
  });
  const add = (tag, attributes) => {
    const element = Object.assign(document.createElement(tag), attributes);
    const done = end(element, "load", "error");
    document.body.append(element);
    return done;
  };
  const post = async (url, enctype) => {
    const name = "frame" + Math.random();
    const frame = Object.assign(document.createElement("iframe"), { name });
    const blank = end(frame, "load");
    document.body.append(frame);
    await blank;
    const form = Object.assign(document.createElement("form"), { action: url, method: "post", target: name, enctype });
    form.append(Object.assign(document.createElement("input"), { name: '{"name":"evil","a":"', value: '"}' }));
    document.body.append(form);
    const done = end(frame, "load");
    form.submit();
    await done;
  };
  const ask = (method, url, mode) => fetch(url, {
    method, mode, credentials: "include",
    ...(method !== "GET" && { body: '{"name":"evil"}' }),
    ...(mode === "cors" && method !== "GET" && { headers: { "content-type": "application/json" } }),
  }).then((reply) => reply.status, () => "failed");
  for (const url of gets) {
    await add("img", { src: url });
    await add("script", { src: url });
    await add("iframe", { src: url });
    await ask("GET", url, "no-cors");
    await ask("GET", url, "cors");
  }
  for (const [method, url] of others) {
    await ask(method, url, "cors");
    if (method !== "POST") continue;
    await ask(method, url, "no-cors");
    for (const enctype of ["text/plain", "application/x-www-form-urlencoded"]) await post(url, enctype);
  }
  for (const url of sockets) await end(new WebSocket(url), "error", "open");
}`;

test.each([
  ["under the dashboard's own name, on the proxy's port", "desk.example.test", "desk.example.test"],
  ["under another name of the same site", "board.example.test", "shop.example.test"],
  ["on another port of this computer", "localhost", "localhost"],
])("a tenant's page %s changes nothing and gets no cookie", { timeout: 120_000 }, async (_title, desk, tenant) => {
  withCookie = [];
  const { port } = new URL(server.url);
  const api = `http://${desk}:${port}`;
  const toApp: (string | undefined)[] = [];
  const app = await httpApp(({ headers }, response) => {
    toApp.push(headers.cookie);
    response.setHeader("content-type", "text/html").end("<!doctype html><title>A shop</title><body></body>");
  });
  const proxy = await rig({ app });
  const context = await browser.newContext();
  onTestFinished(() => context.close());
  const dashboard = await context.newPage();
  await signIn(dashboard, api);
  const before = shop.traces();

  const page = await context.newPage();
  await page.goto(`http://${tenant}:${proxy.port}/`);
  await page.evaluate("document.cookie = 'basket=1'");
  withCookie = [];
  const routes = MORE.map((route) => route.split(" ") as [string, string]);
  const plan = {
    gets: routes.filter(([method]) => method === "GET").map(([, path]) => api + pathOf(path)),
    others: routes.filter(([method]) => method !== "GET").map(([method, path]) => [method, api + pathOf(path)]),
    sockets: ["exec", "forward"].map((name) =>
      (api + pathOf(`/v1/apps/{app_name}/machines/{machine_id}/${name}`)).replace("http", "ws"),
    ),
  };
  await page.evaluate(`(${ATTACK})(${JSON.stringify(plan)})`);
  await page.reload();

  expect(shop.traces()).toEqual(before);
  // The browser did send the cookie along: it was the API that did nothing.
  for (const what of ["GET /v1/apps/shop/machines/v1/exec", "POST /v1/apps/shop/machines/v1/stop", "POST /v1/tokens"])
    expect(
      withCookie.some((request) => request.startsWith(what)),
      what,
    ).toBe(true);
  expect(toApp.length).toBeGreaterThan(1);
  expect(toApp.filter((cookie) => cookie?.includes("hibernaut"))).toEqual([]);
  expect(toApp.at(-1)).toBe("basket=1");
  // And the dashboard still works, with what only admins may read.
  await dashboard.reload();
  await dashboard.goto(`${api}/tokens`);
  await dashboard.getByText("test (you)").waitFor();
});

async function signIn(page: Page, api: string): Promise<void> {
  await page.goto(api);
  await page.getByLabel("Token").fill(server.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
}
