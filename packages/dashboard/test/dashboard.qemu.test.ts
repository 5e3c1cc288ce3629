/** What people see who look at the dashboard of a real platform, in a real browser. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { openBrowser } from "../../platform/test/helpers/browser.ts";
import { PATIENT } from "../../platform/test/helpers/patient.ts";
import { Place } from "../../platform/test/helpers/served.ts";
import { SMALL_APP } from "../../platform/test/helpers/small-app/image.ts";
import { machine } from "./a-machine.ts";
import { openRelay } from "./relay.ts";
import { enterToken, expectAccessible, openPage, type Scheme, signIn, wideParts } from "./signed-in.ts";

/** Only a fault reaches it: a start under emulation on a busy host. */
const START_LIMIT_MS = 240_000;
/** Longer than it takes to notice a connection that was cut without a word. */
const NOTICE_LIMIT_MS = 30_000;

const place = Place.forTests(PATIENT);
let browser: Browser;
beforeAll(async () => {
  browser = await openBrowser();
});
afterAll(async () => {
  await browser.close();
});

const tile = (page: Page, id: string) => page.locator(`.tile[data-machine="${id}"]`);
const inState = (page: Page, id: string, state: string) =>
  page.locator(`.tile[data-machine="${id}"][data-state="${state}"]`).waitFor({ timeout: START_LIMIT_MS });

/** Creates a machine for one test. Pages read then, and learn if their session has ended. */
async function machineThatNeverRuns(): Promise<string> {
  const options = { config: { image: SMALL_APP }, skip_launch: true };
  const { machine_id: id } = await place.client.createMachine(place.app, options);
  onTestFinished(() => place.client.destroyMachine(place.app, id));
  return id;
}

describe("someone who signs in", () => {
  test("is told what is wrong with a token, and gets in with a right one, which the browser does not keep", async () => {
    const page = await openPage(browser);
    await page.goto(place.served.apiUrl);
    await enterToken(page, "hib_wrong");
    await page.getByRole("alert").getByText("unauthenticated").waitFor();
    const token = await place.token();
    await enterToken(page, token);
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    const kept = await page.evaluate(
      "JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage), document.cookie, location.href])",
    );
    expect(kept).not.toContain(token);
    expect(JSON.parse(String(kept)).slice(0, 3)).toEqual([[], [], ""]);
    await page.reload();
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Token").waitFor();
    expect(await page.getByLabel("Token").inputValue()).toBe("");
  });

  test("reaches every page with the keyboard alone, and hears where the focus is", async () => {
    const page = await openPage(browser);
    await signIn(page, place);
    await page.keyboard.press("Tab");
    expect(await page.evaluate("document.activeElement.textContent.trim()")).toBe("Skip to the content");
    await page.getByRole("link", { name: "Host", exact: true }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Host", level: 1 }).waitFor();
    await expect.poll(() => page.evaluate("document.activeElement.textContent")).toBe("Host");
    await expect.poll(() => page.title()).toBe("Host · Hibernaut");
    await page.goBack();
    await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
  });

  test("loses the page when the token is revoked elsewhere", { tags: "again" }, async () => {
    const page = await openPage(browser);
    const { token, id } = await place.client.createToken("visitor", { scopes: ["read"] });
    await page.goto(place.served.apiUrl);
    await enterToken(page, token);
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    expect(await page.getByRole("link", { name: "Tokens", exact: true }).count()).toBe(0);
    await page.getByRole("searchbox").fill("shop");
    await place.client.revokeToken(id);
    const made = await machineThatNeverRuns();
    await page.getByText("Your session has ended.").waitFor();
    expect(await page.getByText(made).count()).toBe(0);
  });
});

describe("with a machine", () => {
  let id: string;
  let name: string;
  beforeAll(async () => {
    ({ machine_id: id, name } = await place.machine());
  }, START_LIMIT_MS);
  afterAll(() => place.client.destroyMachine(place.app, id, { force: true }));

  const wakesOn = (page: Page) => page.getByRole("slider", { name: `Wakes of ${place.app} / ${name}` });

  // First: this is the machine's first sleep.
  test("it is shown as warm, and as suspended when its virtual machine has ended", {
    tags: "again",
    timeout: START_LIMIT_MS * 2,
  }, async () => {
    await place.served.stop();
    await place.served.start({ HIBERNAUT_KEEP_WARM: "20s" });
    const page = await openPage(browser);
    await signIn(page, place);
    await inState(page, id, "running");
    expect(await tile(page, id).textContent()).toContain("cold started in");
    await place.suspend(id);
    await tile(page, id).getByText("suspended, warm").waitFor();
    const strip = page.locator(`.strip-row[data-machine="${id}"]`);
    await strip.locator(".span-warm").waitFor();

    await tile(page, id).getByText("suspended", { exact: true }).waitFor({ timeout: START_LIMIT_MS });
    await strip.locator(".span-suspended").waitFor();
    expect(await strip.locator(".span-warm").count()).toBe(1);
    await place.served.stop();
    await place.served.start();
    await place.start(id);
  });

  test("it falls asleep and wakes on screen, without a reload, and the chart tells how", {
    timeout: START_LIMIT_MS * 2,
  }, async () => {
    const page = await openPage(browser);
    await signIn(page, place);
    await page.evaluate("window.sameDocument = true");
    await inState(page, id, "running");
    await place.suspend(id);
    await inState(page, id, "suspended");
    await place.start(id);
    await inState(page, id, "running");
    await tile(page, id).getByText("resumed in").waitFor();

    const wakes = wakesOn(page);
    await wakes.focus();
    expect(await wakes.getAttribute("aria-valuetext")).toMatch(/, resume in \d/);
    await page.getByRole("tooltip").getByText("resume in").waitFor();
    await page.keyboard.press("Escape");
    expect(await page.getByRole("tooltip").count()).toBe(0);

    // Set at the beginning: a reload would have lost it.
    expect(await page.evaluate("window.sameDocument")).toBe(true);
  });

  test("a connection that is cut without a word is noticed, and what happened meanwhile is there after it", {
    tags: "again",
    timeout: START_LIMIT_MS * 2,
  }, async () => {
    const relay = await openRelay(Number(new URL(place.served.apiUrl).port));
    const page = await openPage(browser);
    await signIn(page, place, relay.url);
    await inState(page, id, "running");
    const before = Number(await wakesOn(page).getAttribute("aria-valuemax"));

    relay.hold();
    await page.getByText("Connection lost.").waitFor({ timeout: NOTICE_LIMIT_MS });
    await place.suspend(id);
    await place.start(id);
    await place.suspend(id);
    expect(await tile(page, id).getAttribute("data-state")).toBe("running");

    relay.release();
    await inState(page, id, "suspended");
    await page.getByText("Connection lost.").waitFor({ state: "detached", timeout: NOTICE_LIMIT_MS });
    await expect.poll(() => wakesOn(page).getAttribute("aria-valuemax")).toBe(String(before + 1));
    await place.start(id);
  });

  test.each<[Scheme, number]>([
    ["light", 1280],
    ["dark", 380],
  ])(
    "the pages are accessible, %s, %d pixels wide, and do not exceed that",
    { tags: "again" },
    async (scheme, width) => {
      const page = await openPage(browser, { scheme, width });
      await page.goto(place.served.apiUrl);
      await page.getByLabel("Token").waitFor();
      await expectAccessible(page);
      await signIn(page, place);
      for (const [path, heading] of [
        ["/", "Overview"],
        ["/host", "Host"],
        ["/tokens", "Tokens"],
        ["/audit", "Audit log"],
      ] as const) {
        await page.goto(place.served.apiUrl + path);
        await page.getByRole("heading", { name: heading, level: 1 }).waitFor();
        await page.locator(".loading").first().waitFor({ state: "detached" });
        for (const summary of await page.locator("summary").all()) await summary.click();
        await expectAccessible(page);
        expect(await wideParts(page), path).toEqual([]);
      }
    },
  );
});

test("an app that crashes is among what fails now, with the reason, and no longer when it is gone", {
  tags: "again",
  timeout: START_LIMIT_MS * 2,
}, async () => {
  const page = await openPage(browser);
  await signIn(page, place);
  const { machine_id: id, name } = await place.machine({
    init: { cmd: ["--fail", "3"] },
    restart: { policy: "no" },
  });
  await place.reach(id, "stopped");
  const problem = page.locator(".problem", { hasText: name });
  await problem.getByText("the app exited with code 3").waitFor();
  await place.client.destroyMachine(place.app, id, { force: true });
  await problem.waitFor({ state: "detached" });
  expect(await page.getByRole("heading", { name: "Failing now" }).count()).toBe(0);
});

test.each(["/", "/apps/APP", "/apps/APP/machines/a1"])(
  "names and reasons are shown as text, also when they are HTML: %s",
  async (path) => {
    const page = await openPage(browser);
    const html = `<img src=x onerror="window.broken=1"><script>window.broken=1</script>`;
    const broken = machine({ name: html, app_name: place.app, state: "failed", state_reason: html });
    await page.route("**/v1/machines", (route) => route.fulfill({ json: [broken] }));
    await signIn(page, place);
    await page.goto(place.served.apiUrl + path.replace("APP", place.app));
    await page.getByText(html).nth(1).waitFor();
    expect(await page.evaluate("window.broken")).toBeUndefined();
    expect(await page.locator("main img, main script").count()).toBe(0);
  },
);

test("a token is made, shown once, and revoked, with the keyboard", { tags: "again" }, async () => {
  const page = await openPage(browser);
  await signIn(page, place);
  await page.getByRole("link", { name: "Tokens", exact: true }).click();
  // A navigation takes the focus to the new page's heading. From there on, the keyboard works on that page.
  await page.locator("h1:focus").getByText("Tokens").waitFor();
  await page.getByRole("button", { name: "Create a token" }).press("Enter");
  await page.getByLabel("Name").fill("ci");
  await page.keyboard.press("Enter");
  const secret = await page.locator("[data-secret]").textContent();
  expect(secret).toMatch(/^hib_/);
  await page.getByRole("button", { name: "I have copied it" }).click();
  expect(await page.content()).not.toContain(secret);
  const made = (await place.client.listTokens()).find(({ name }) => name === "ci");
  expect(made?.scopes).toEqual(["read"]);

  await page.getByRole("button", { name: "Revoke ci" }).press("Enter");
  await page.getByRole("button", { name: "Revoke", exact: true }).press("Enter");
  await page.locator(`[data-token="${made?.id}"]`).getByText("revoked").waitFor();
  const after = (await place.client.listTokens()).find(({ id }) => id === made?.id);
  expect(after?.revoked_at).not.toBeNull();
});

test("someone who rotates the token they are signed in with gets the new one, also when the session ends", {
  tags: "again",
}, async () => {
  const page = await openPage(browser);
  const own = await place.client.createToken("operator", { scopes: ["admin"] });
  await page.goto(`${place.served.apiUrl}/tokens`);
  await enterToken(page, own.token);
  await page.getByRole("button", { name: "Rotate operator" }).click();
  await page.getByText("your session ends with the old one").waitFor();
  expect(await page.getByRole("option").allTextContents()).toEqual(["for an hour", "for a day", "for 7 days"]);
  await page.getByRole("button", { name: "Rotate", exact: true }).click();
  const secret = await page.locator("[data-secret]").textContent();

  await place.client.revokeToken(own.id);
  await machineThatNeverRuns();
  await page.getByText("Your session has ended.").waitFor();
  expect(await page.locator("[data-secret]").textContent()).toBe(secret);
  await page.getByRole("button", { name: "I have copied it" }).click();
  await enterToken(page, String(secret));
  await page.getByRole("heading", { name: "Tokens", level: 1 }).waitFor();
});
