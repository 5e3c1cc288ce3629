/**
 * What people do with an app and its machines in the dashboard, on a real platform and in a real browser.
 *
 * @module-tag again
 */
import { join } from "node:path";
import type { Machine } from "@hibernaut/client";
import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openBrowser } from "../../platform/test/helpers/browser.ts";
import { PATIENT } from "../../platform/test/helpers/patient.ts";
import { ask } from "../../platform/test/helpers/proxied.ts";
import { NOTHING_LEFT, Place } from "../../platform/test/helpers/served.ts";
import { shellImage } from "../../platform/test/helpers/shell-image.ts";
import { packSmallAppWith, SMALL_APP } from "../../platform/test/helpers/small-app/image.ts";
import {
  enterToken,
  expectAccessible,
  openPage,
  type Scheme,
  signIn,
  type Watched,
  watchedPage,
  wideParts,
} from "./signed-in.ts";

/** Only a fault reaches it: a start under emulation on a busy host. */
const LIMIT_MS = 240_000;
const HTML = `<img src=x onerror="window.broken=1"><script>window.broken=1</script>`;
/** Counts, so that its log never ends. Nothing listens on the port of its check. */
const COUNTING = `echo '${HTML}'; n=0; while :; do n=$((n+1)); echo "tick $n"; sleep 1; done`;

let place: Place;
let browser: Browser;
/** Serves the app. A process group of its own, so that deploys change it and not the other. */
let web: Machine;
/** Has a shell, writes to its log, and fails its check. */
let worker: Machine;
let watched: Watched;
let page: Page;

beforeAll(async () => {
  [browser, place] = await Promise.all([openBrowser(), Place.open(PATIENT)]);
  const image = await shellImage();
  [web, worker] = await Promise.all([
    place.machine({
      metadata: { hibernaut_process_group: "app" },
      services: [{ protocol: "http", internal_port: 8080, autostop: "suspend", idle_timeout: 3600 }],
    }),
    place.machine({
      image,
      services: [],
      init: { exec: ["/bin/sh", "-c", COUNTING] },
      checks: { api: { type: "http", port: 9000, path: "/health", grace_period: "100ms" } },
    }),
  ]);
  watched = await watchedPage(browser);
  ({ page } = watched);
  page.setDefaultTimeout(45_000);
  await signIn(page, place);
}, LIMIT_MS);
afterAll(async () => {
  await browser?.close();
  expect(await place?.close()).toEqual(NOTHING_LEFT);
});

const appPage = () => `${place.served.apiUrl}/apps/${place.app}`;
const machinePage = ({ machine_id: id }: Machine) => `${appPage()}/machines/${id}`;
const inState = (state: string) => page.locator(`.machine-now[data-state="${state}"]`).waitFor();
const answer = async () => (await ask(place)).text;
const button = (name: string) => page.getByRole("button", { name, exact: true });

/** A button that is not possible says why: what describes it for screen readers, and is shown. */
const reasonOf = async (one: Locator) => {
  const id = await one.getAttribute("aria-describedby");
  return id === null ? null : await one.page().locator(`[id="${id}"]`).textContent();
};
const refusalOf = async (name: string) =>
  [await button(name).getAttribute("aria-disabled"), await reasonOf(button(name))] as const;

describe("someone on a machine's page", { timeout: LIMIT_MS * 2 }, () => {
  test("suspends it with the mouse and starts it with the keyboard, and sees why it is awake", async () => {
    await page.goto(machinePage(web));
    await inState("running");
    await page.evaluate("window.sameDocument = true");
    await page.locator('[data-why="recently_used"]').waitFor();
    await page.getByText("was cold, because it never ran before").waitFor();
    expect(await refusalOf("Start")).toEqual(["true", "It is running."]);
    const reason = page.getByRole("tooltip").getByText("It is running.");
    await button("Suspend").focus();
    await page.keyboard.press("Shift+Tab");
    await reason.waitFor();
    await page.keyboard.press("Escape");
    await reason.waitFor({ state: "hidden" });
    // As a finger would: the button is not possible, which a click of the test's browser waits for otherwise.
    await button("Start").click({ force: true });
    await reason.waitFor();

    await button("Suspend").click();
    await inState("suspended");
    await page.getByText("resumes from it").waitFor();
    expect(await refusalOf("Suspend")).toEqual(["true", "It is asleep."]);

    await button("Start").focus();
    await page.keyboard.press("Enter");
    await inState("running");
    await page.getByText("was a resume from its snapshot").waitFor();
    const suspend = button("Suspend");
    await suspend.focus();
    await page.keyboard.press("Space");
    await inState("suspended");
    await page.locator('.event[data-event="captured"]').nth(1).waitFor();

    expect(await answer()).toContain("nonce");
    await inState("running");
    // Set at the beginning: a reload would have lost it.
    expect(await page.evaluate("window.sameDocument")).toBe(true);
    await page.locator(".u-wrap canvas").nth(1).waitFor();
  });

  test("forks it, and keeps a template, from which an app's page makes a machine that says where it came from", async () => {
    await page.goto(machinePage(web));
    await inState("running");
    const dialog = page.getByRole("dialog");
    const note = (text: string) => page.getByRole("status").getByText(text);
    await button("Fork…").focus();
    await page.keyboard.press("Enter");
    await dialog.getByText(`${web.name} is paused while`).waitFor();
    await dialog.getByLabel("How many").fill("2");
    await dialog.getByText("2 forks take 512 MB of the host's disk").waitFor();
    await dialog.getByLabel("Name").fill("branch");
    await dialog.getByLabel("Cordoned").check();
    await dialog.getByLabel("Asleep").check();
    await expectAccessible(page);
    await dialog.getByLabel("Name").press("Enter");
    await note("Made 2 forks").waitFor();
    await page.getByRole("link", { name: "branch-2", exact: true }).click();
    await page.locator('[data-origin="fork"]').getByRole("link", { name: web.name }).click();

    await button("Make a template…").focus();
    await page.keyboard.press("Enter");
    await dialog.getByLabel("Name").fill("ready");
    await page.keyboard.press("Enter");
    await note("Made the template ready").waitFor();
    await page.getByRole("status").getByRole("link", { name: place.app }).click();
    const row = page.getByRole("row", { name: "ready" });
    await row.getByText("none").waitFor();
    await page.setViewportSize({ width: 380, height: 900 });
    await expectAccessible(page);
    expect(await wideParts(page)).toEqual([]);
    await page.setViewportSize({ width: 1280, height: 900 });

    await button("Make a machine from ready").click();
    await dialog.getByLabel("Name").fill("child");
    await dialog.getByLabel("Cordoned").check();
    await page.keyboard.press("Enter");
    await note("Made the machine child").waitFor();
    await row.getByRole("link", { name: "child" }).click();
    await inState("running");
    await page.getByText("was a resume from its snapshot").waitFor();
    await page.locator('[data-origin="template"]').getByRole("link", { name: "ready" }).click();

    // What others do is seen, too.
    const later = await place.client.createTemplate(place.app, { from: web.machine_id, name: "later" });
    await page.getByRole("row", { name: "later" }).waitFor();
    await place.client.deleteTemplate(place.app, later.id);
    await page.getByRole("row", { name: "later" }).waitFor({ state: "detached" });
    await button("Delete the template ready").click();
    await dialog.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("heading", { name: "Templates" }).waitFor({ state: "detached" });

    const made = (await place.client.listMachines(place.app)).filter(({ origin }) => origin !== null);
    expect(made.map(({ name }) => name).sort()).toEqual(["branch-1", "branch-2", "child"]);
    expect(made.every(({ cordoned, origin }) => cordoned && origin?.machine_id === web.machine_id)).toBe(true);
    for (const { machine_id: id } of made) await place.client.destroyMachine(place.app, id, { force: true });
  });

  test("cordons it and ends that, and sees at once when someone else did", { tags: "again" }, async () => {
    await page.goto(machinePage(worker));
    await button("Cordon").click();
    await button("Uncordon").click();
    await button("Cordon").waitFor();
    const { app_name: app, machine_id: id } = worker;
    await place.client.cordonMachine(app, id);
    await button("Uncordon").waitFor();
    await page.locator('.event[data-event="cordoned"]').nth(1).waitFor();
    await place.client.uncordonMachine(app, id);
    await button("Cordon").waitFor();
  });

  test("follows its log, in which HTML stays text, and filters it", async () => {
    await page.goto(machinePage(worker));
    const log = page.getByRole("log");
    await log.getByText(HTML).waitFor();
    const before = await log.locator(".log-line").count();
    await expect.poll(() => log.locator(".log-line").count(), { timeout: LIMIT_MS }).toBeGreaterThan(before + 1);
    await page.getByLabel("Show lines with these words").fill("TICK 1");
    await expect.poll(() => log.getByText(HTML).count()).toBe(0);
    expect(await log.locator(".log-text").first().textContent()).toBe("tick 1");
    expect(await page.evaluate("window.broken")).toBeUndefined();
    expect(await page.locator("main img, main script").count()).toBe(0);
  });

  test("sees which check fails, and what it said", async () => {
    await page.goto(machinePage(worker));
    const check = page.locator('[data-check="api"]');
    await page.locator('[data-check="api"][data-status="critical"]').waitFor();
    await check.getByText("failing").waitFor();
    expect(await check.locator(".check-output").textContent()).toMatch(/refused|connect/i);
  });

  test("types into a console, leaves it with the keyboard, and sees how it ended", async () => {
    await page.goto(machinePage(worker));
    await button("Open a console").focus();
    await page.keyboard.press("Enter");
    await page.locator('[data-console="open"]').waitFor();
    const screen = page.locator(".xterm-accessibility-tree");
    await page.keyboard.type("echo $((6*7))-answers\n");
    await screen.getByText(/^(# )?42-answers/).waitFor();
    // The terminal has the size of its place, and follows it: a line says how wide it is now.
    const widths = async () => {
      await page.keyboard.type("echo width $(stty size)\n");
      const text = (await screen.textContent()) ?? "";
      return [...text.matchAll(/width \d+ (\d+)/g)].map(([, columns]) => Number(columns));
    };
    await expect.poll(async () => (await widths()).length, { timeout: LIMIT_MS, interval: 500 }).toBeGreaterThan(0);
    const [wide = 0] = await widths();
    await page.setViewportSize({ width: 700, height: 900 });
    await expect.poll(async () => (await widths()).at(-1), { timeout: LIMIT_MS, interval: 500 }).toBeLessThan(wide);
    await page.setViewportSize({ width: 1280, height: 900 });
    // A color of 24 bits takes another way through the terminal than the sixteen.
    await page.keyboard.type(String.raw`printf '\033[38;2;1;200;2mgreen\033[0m\n'` + "\n");
    await page.locator(".xterm-rows span", { hasText: /^green$/ }).waitFor();
    const colorOf = `getComputedStyle([...document.querySelectorAll(".xterm-rows span")].find((e) => e.textContent === "green")).color`;
    expect(await page.evaluate(colorOf)).toBe("rgb(1, 200, 2)");
    await page.getByText("Commands: 1.").waitFor();
    await page.keyboard.press("F6");
    expect(await page.evaluate("document.activeElement.textContent")).toBe("Close the console");
    await page.locator(".xterm-helper-textarea").focus();
    await page.keyboard.type("exit 3\n");
    await page.getByText("The shell has ended with exit code 3.").waitFor();
    await button("Close the console").click();
  });

  test("destroys it only after typing its name", async () => {
    const { machine_id: id, name } = await place.client.createMachine(place.app, {
      config: { image: SMALL_APP },
      skip_launch: true,
    });
    await page.goto(`${appPage()}/machines/${id}`);
    await button("Destroy…").click();
    await page.getByRole("dialog").getByLabel("Type the machine's name").fill("something else");
    await page.keyboard.press("Enter");
    expect((await place.get(id)).state).toBe("created");
    await page.getByRole("dialog").getByLabel("Type the machine's name").fill(name);
    await page.keyboard.press("Enter");
    await page.getByText("This machine was destroyed.").waitFor();
    await place.reach(id, "destroyed");
  });
});

describe("someone on an app's page", { timeout: LIMIT_MS * 2 }, () => {
  test("deploys a new image, and rolls back", async () => {
    const first = await place.client.createRelease(place.app, { image: SMALL_APP });
    await place.client.updateRelease(place.app, first.version, { status: "complete" });
    const layout = join(place.dataDir, "second");
    await packSmallAppWith(["--text", "second version"], layout);
    await page.goto(appPage());
    await page.locator('[data-release="1"]').getByText("what the machines have now").waitFor();

    await button("Deploy an image…").click();
    await page.getByRole("dialog").getByLabel("Image").fill(`oci:${layout}:latest`);
    await page.keyboard.press("Enter");
    await page.locator('[data-job="complete"]').waitFor();
    await page.locator('[data-release="2"][data-status="complete"]').waitFor();
    expect(await answer()).toBe("second version");
    expect((await place.get(worker.machine_id)).image).toEqual(worker.image);

    await button("Roll back to release 1").click();
    await page.getByRole("dialog").getByRole("button", { name: "Roll back" }).click();
    await page.locator('[data-release="3"][data-status="complete"]').waitFor();
    await page.locator('[data-release="3"]').getByText("what the machines have now").waitFor();
    expect(await answer()).toContain("nonce");
  });

  test("is told in the platform's words when an image does not exist, and nothing has changed", {
    tags: "again",
  }, async () => {
    const before = await place.client.listReleases(place.app);
    await page.goto(appPage());
    await button("Deploy an image…").click();
    await page.getByRole("dialog").getByLabel("Image").fill("oci:/nowhere:latest");
    await page.keyboard.press("Enter");
    const failed = page.locator('[data-job="failed"]');
    await failed.getByRole("alert").getByText("/nowhere").first().waitFor();
    expect(await place.client.listReleases(place.app)).toEqual(before);
    await button("Dismiss").click();
  });

  test("shortens the idle timeout, and sees the machine fall asleep by itself, and wake at a request", {
    tags: "again",
  }, async () => {
    await page.goto(appPage());
    await page.getByLabel("Idle timeout, in seconds").fill("");
    // Anything that happens to a machine renders the form again. What is being typed stays.
    await page.locator('input[name="cpus"]').fill("1");
    expect(await page.getByLabel("Idle timeout, in seconds").inputValue()).toBe("");
    await page.getByLabel("Idle timeout, in seconds").fill("1");
    await page.getByLabel("Idle timeout, in seconds").press("Enter");
    await page.locator('[data-job="complete"]').waitFor({ timeout: LIMIT_MS });
    const tile = page.locator(`.tile[data-machine="${web.machine_id}"][data-state="suspended"]`);
    const explained = async (cause: unknown) => {
      const activity = await place.client.getMachineActivity(place.app, web.machine_id);
      const events = await place.client.listMachineEvents(place.app, web.machine_id, { limit: 9 });
      throw new Error(`${JSON.stringify(activity)}\n${JSON.stringify(events)}`, { cause });
    };
    // If it stays awake, the platform knows why.
    await tile.waitFor().catch(explained);
    expect(await answer()).toContain("nonce");
    await tile.getByText("resumed in").waitFor().catch(explained);
    const { config } = await place.get(web.machine_id);
    expect(config.services?.[0]).toMatchObject({ idle_timeout: 1, autostop: "suspend", internal_port: 8080 });
  });

  test("sets a secret, whose value does not come back, and unsets it", async () => {
    await page.goto(appPage());
    await button("Set a secret…").click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("API_KEY");
    await dialog.getByLabel("Value").fill("very-secret-value");
    await page.keyboard.press("Enter");
    await page.locator('[data-secret="API_KEY"]').waitFor();
    expect(await page.content()).not.toContain("very-secret-value");
    expect((await place.client.listSecrets(place.app)).map(({ name }) => name)).toEqual(["API_KEY"]);
    await button("Unset API_KEY").click();
    await dialog.getByRole("button", { name: "Unset" }).click();
    await page.locator('[data-secret="API_KEY"]').waitFor({ state: "detached" });
    expect(await place.client.listSecrets(place.app)).toEqual([]);
  });

  test("adds a hostname, and removes it", { tags: "again" }, async () => {
    await page.goto(appPage());
    await button("Add a hostname…").click();
    await page.getByRole("dialog").getByLabel("Hostname").fill("www.shop.test");
    await page.keyboard.press("Enter");
    await page.locator('[data-hostname="www.shop.test"]').waitFor();
    expect(await place.client.listHostnames(place.app)).toContain("www.shop.test");
    await button("Remove www.shop.test").click();
    await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
    await page.locator('[data-hostname="www.shop.test"]').waitFor({ state: "detached" });
  });

  test("follows the logs of all its machines", { tags: "again" }, async () => {
    await page.goto(appPage());
    const log = page.getByRole("log");
    await log.locator(".log-line", { hasText: worker.name }).first().waitFor();
    await log.locator(".log-line", { hasText: web.name }).first().waitFor();
    await page.getByLabel("Machine", { exact: true }).selectOption({ label: web.name });
    await expect.poll(() => log.getByText("tick", { exact: false }).count(), { timeout: LIMIT_MS }).toBe(0);
    expect(await page.evaluate("window.broken")).toBeUndefined();
  });
});

test("what a token does not allow is not offered, and names the scope", { timeout: LIMIT_MS }, async () => {
  const { token } = await place.client.createToken("visitor", { scopes: ["read"] });
  const visitor = await openPage(browser);
  await visitor.goto(machinePage(worker));
  await enterToken(visitor, token);
  const named = (name: string) => visitor.getByRole("button", { name, exact: true });
  await named("Stop").waitFor();
  for (const [name, scope] of [
    ["Stop", "deploy"],
    ["Start", "exec or deploy"],
    ["Open a console", "exec"],
  ] as const) {
    expect(await named(name).getAttribute("aria-disabled")).toBe("true");
    expect(await reasonOf(named(name))).toBe(`This needs a token with the scope ${scope}.`);
  }
  await visitor.goto(appPage());
  expect(await reasonOf(named("Deploy an image…"))).toContain("scope deploy");
  expect(await visitor.getByLabel("Idle timeout, in seconds").isDisabled()).toBe(true);
});

test.each<[Scheme, number]>([
  ["light", 1280],
  ["dark", 380],
])(
  "both pages are accessible, %s, %d pixels wide, and do not exceed that",
  { timeout: LIMIT_MS },
  async (scheme, width) => {
    const other = await openPage(browser, { scheme, width });
    await signIn(other, place);
    for (const path of [appPage(), machinePage(worker)]) {
      await other.goto(path);
      await other.getByRole("log").waitFor();
      await expect.poll(() => other.locator(".loading").count()).toBe(0);
      if (path === machinePage(worker)) {
        await other.getByRole("button", { name: "Open a console" }).click();
        await other.locator('[data-console="open"]').waitFor();
      }
      await expectAccessible(other);
      expect(await wideParts(other)).toEqual([]);
      expect(await other.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(width);
    }
  },
);

test("nothing of all that was refused by the page's policy, and no script failed", () => {
  expect(watched.faults).toEqual([]);
});
