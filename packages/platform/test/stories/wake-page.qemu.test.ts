/** What a person sees who visits an app whose machine has to cold start, and what programs get. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openBrowser } from "../helpers/browser.ts";
import { PATIENT } from "../helpers/patient.ts";
import { ask, wakeOf } from "../helpers/proxied.ts";
import { NOTHING_LEFT, Place } from "../helpers/served.ts";
import { openTempFolder, type TempFolder } from "../helpers/temp.ts";

/** Only a fault reaches it: a cold start on a busy host. */
const START_LIMIT_MS = 240_000;

let place: Place;
let browser: Browser;
let folder: TempFolder;
/** The app's only machine. Each story says what state it needs. */
let id: string;
beforeAll(async () => {
  [browser, folder, place] = await Promise.all([openBrowser(), openTempFolder("page"), Place.open(PATIENT)]);
  ({ machine_id: id } = await place.machine(config));
}, START_LIMIT_MS);
afterAll(async () => {
  await browser.close();
  await folder.dispose();
  expect(await place.close()).toEqual(NOTHING_LEFT);
});

/** What the app says. */
const WELCOME = "Welcome to the shop";
const config = {
  init: { cmd: ["--text", WELCOME] },
  services: [{ internal_port: 8080, wake_page: true }],
};

/** Stops the machine, so that it needs a cold start. */
async function stop(): Promise<void> {
  await place.client.stopMachine(place.app, id);
  await place.reach(id, "stopped");
}

const visited = () => new URL(place.proxyUrl).port;

test("a browser shows a page while the machine starts, and then the app, by itself and without scripts", {
  timeout: START_LIMIT_MS * 2,
}, async () => {
  await stop();

  const context = await browser.newContext({ javaScriptEnabled: false, colorScheme: "dark" });
  const page = await context.newPage();
  const blocked: string[] = [];
  page.on("console", (message) => message.type() === "error" && blocked.push(message.text()));
  const elsewhere: string[] = [];
  page.on("request", (sent) => sent.isNavigationRequest() || elsewhere.push(sent.url()));

  const address = `http://${place.app}.localhost:${visited()}/`;
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
  const program = ask({ proxyUrl: place.proxyUrl, app: place.app }, "/", { timeoutMs: START_LIMIT_MS });
  const answer = await program;
  expect([answer.status, wakeOf(answer).kind]).toEqual([200, "cold"]);
});

test("what a page fetches is held, and so is a visit to a machine that resumes", {
  tags: "again",
  timeout: START_LIMIT_MS * 2,
}, async () => {
  await place.start(id);
  const page = await browser.newPage();
  const address = `http://${place.app}.localhost:${visited()}/`;
  await page.goto(address);

  await place.suspend(id);
  const visit = await page.goto(address, { timeout: START_LIMIT_MS });
  expect([visit?.status(), visit?.headers()["hibernaut-wake"]]).toEqual([
    200,
    expect.stringMatching(/^(warm|resume);/),
  ]);

  await stop();
  const fetched = await page.evaluate(async () => {
    const response = await fetch("/", { headers: { Accept: "text/html" } });
    return [response.status, response.headers.get("hibernaut-wake")];
  });
  expect(fetched).toEqual([200, expect.stringMatching(/^cold;/)]);
  await page.close();
});

test("an operator's own page is shown instead, and one that would never end is refused at the start", {
  tags: "again",
  timeout: START_LIMIT_MS * 2,
}, async () => {
  const own = join(folder.path, "page.html");
  await stop();
  await place.served.stop();
  await writeFile(own, "<p>Moment mal</p>");
  const settings = { HIBERNAUT_PROXY_WAKE_PAGE: own };
  await expect(place.served.start(settings)).rejects.toThrow(/does not reload itself/);
  await writeFile(own, '<meta http-equiv="refresh" content="1"><style>p { color: teal }</style><p>Moment mal</p>');
  await place.served.start(settings);

  const page = await browser.newPage();
  await page.goto(`http://${place.app}.localhost:${visited()}/`);
  expect(await page.locator("p").textContent()).toBe("Moment mal");
  expect(await page.evaluate("getComputedStyle(document.querySelector('p')).color")).toBe("rgb(0, 128, 128)");
  await page.getByText(WELCOME).waitFor({ timeout: START_LIMIT_MS });
  await page.close();
});
