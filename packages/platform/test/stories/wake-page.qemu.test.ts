/**
 * What a person sees who visits an app whose machine has to cold start, and what programs get.
 *
 * @module-tag again
 */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openBrowser } from "../helpers/browser.ts";
import { PATIENT } from "../helpers/patient.ts";
import { ask, wakeOf } from "../helpers/proxied.ts";
import { Place } from "../helpers/served.ts";

/** Only a fault reaches it: a cold start on a busy host. */
const START_LIMIT_MS = 240_000;

/** What the app says. */
const WELCOME = "Welcome to the shop";

const place = Place.forTests(PATIENT);
let browser: Browser;
beforeAll(async () => {
  browser = await openBrowser();
});
afterAll(() => browser.close());

test("a browser shows a page while the machine starts, and then the app, by itself and without scripts", {
  timeout: START_LIMIT_MS * 2,
}, async () => {
  const { machine_id: id } = await place.machine({
    init: { cmd: ["--text", WELCOME] },
    services: [{ internal_port: 8080, wake_page: true }],
  });
  const stop = async () => {
    await place.client.stopMachine(place.app, id);
    await place.reach(id, "stopped");
  };
  await stop();

  const context = await browser.newContext({ javaScriptEnabled: false, colorScheme: "dark" });
  const page = await context.newPage();
  const blocked: string[] = [];
  page.on("console", (message) => message.type() === "error" && blocked.push(message.text()));
  const elsewhere: string[] = [];
  page.on("request", (sent) => sent.isNavigationRequest() || elsewhere.push(sent.url()));

  const address = `http://${place.app}.localhost:${new URL(place.proxyUrl).port}/`;
  const first = await page.goto(address);
  expect(first?.status()).toBe(503);
  expect(await page.getByRole("heading").textContent()).toBe("Starting");
  // The content security policy lets the page's own style through.
  expect(await page.evaluate("getComputedStyle(document.body).backgroundColor")).toBe("rgb(22, 22, 24)");

  await page.getByText(WELCOME).waitFor({ timeout: START_LIMIT_MS });
  expect(page.url()).toBe(address);
  expect(elsewhere.filter((url) => !url.endsWith("/favicon.ico"))).toEqual([]);
  expect(blocked.filter((text) => text.includes("Content Security Policy"))).toEqual([]);
  await context.close();

  await stop();
  const answer = await ask({ proxyUrl: place.proxyUrl, app: place.app }, "/", { timeoutMs: START_LIMIT_MS });
  expect([answer.status, wakeOf(answer).kind]).toEqual([200, "cold"]);
});
