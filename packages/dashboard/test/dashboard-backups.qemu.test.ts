/**
 * Backups and networks in the dashboard, of a real platform and in a real browser: a backup is made and tried, and a network
 * shows who is awake.
 *
 * @module-tag again
 */
import { join } from "node:path";
import type { BackupTarget, MachineConfig } from "@hibernaut/client";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findTool } from "../../../scripts/lib/test-tools.mjs";
import { openBrowser } from "../../platform/test/helpers/browser.ts";
import { notebook } from "../../platform/test/helpers/notebook.ts";
import { PATIENT } from "../../platform/test/helpers/patient.ts";
import { ask } from "../../platform/test/helpers/proxied.ts";
import { NOTHING_LEFT, Place } from "../../platform/test/helpers/served.ts";
import { SMALL_APP } from "../../platform/test/helpers/small-app/image.ts";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { backupSet, drill, last, target } from "./a-target.ts";
import { enterToken, expectAccessible, openPage, type Scheme, signIn, wideParts } from "./signed-in.ts";

const VARIABLES = { ...PATIENT, HIBERNAUT_RESTIC: findTool("restic"), HIBERNAUT_NETWORK: "bridge" };
/** Only a fault reaches it: a backup and a drill under emulation on a busy host. */
const LIMIT_MS = 240_000;
const HTML = `<img src=x onerror="window.broken=1"><script>window.broken=1</script>`;
const [WEB, DB] = ["crm-web", "crm-db"];

let place: Place;
let browser: Browser;
/** Of `DB`: it has a volume, and what a drill counts. */
let id: string;

beforeAll(async () => {
  [browser, place] = await Promise.all([openBrowser(), Place.open(VARIABLES)]);
  await place.client.createApp(DB, { network: "crm", aliases: ["db"] });
  await place.client.createApp(WEB, { network: "crm", wakes: [DB] });
  const counts = [{ name: "lines", command: ["/app", "--count", "/data/notes"], minimum: 1 }];
  const services: MachineConfig["services"] = [{ protocol: "http", internal_port: 8080, autostop: "off" }];
  const config = { image: SMALL_APP, ...notebook(), services, backup: { counts } };
  ({ machine_id: id } = await place.client.createMachine(DB, { name: "db", config }));
  await place.client.waitForMachine(DB, id, { state: ["running"], timeout: LIMIT_MS / 1000 });
  const written = await ask({ proxyUrl: place.proxyUrl, app: DB }, "/sure", { method: "POST", body: "a line" });
  expect(written.status).toBe(200);
}, LIMIT_MS);
afterAll(async () => {
  await browser?.close();
  for (const app of [WEB, DB]) await place?.client.destroyApp(app, { force: true });
  expect(await place?.close()).toEqual(NOTHING_LEFT);
});

const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const goTo = async (page: Page, name: string) => {
  await page.getByRole("link", { name, exact: true }).click();
  await page.getByRole("heading", { name, level: 1 }).waitFor();
};

test("an admin backs up, tries the backup in a drill, and sees how to restore it", {
  timeout: LIMIT_MS * 2,
}, async () => {
  const page = await openPage(browser);
  page.setDefaultTimeout(LIMIT_MS);
  await signIn(page, place);
  await goTo(page, "Backups");
  await page.getByText("No backups are made: there is no target for them.").waitFor();
  const { key } = await place.client.addBackupTarget({ name: "usb", url: join(await tempFolder("usb"), "repository") });
  await goTo(page, "Overview");
  await goTo(page, "Backups");

  await page.getByText("No app was tried yet.").waitFor();
  await button(page, "Back up now").click();
  await page
    .getByText("complete now")
    .or(page.getByText(/complete [\d.]+ s ago/))
    .waitFor();

  await button(page, "Drill…").press("Enter");
  await page.getByRole("dialog").getByLabel("App").selectOption(DB);
  await page.getByRole("dialog").getByRole("button", { name: "Drill" }).click();
  await page.getByRole("status").getByText("Trying an app in a drill").waitFor();
  const row = page.locator(`[data-drill="${DB}"]`);
  await row.getByText("passed").or(row.locator(".bad")).first().waitFor();
  expect(await row.textContent()).toContain("lines in db: 1, at least 1");
  expect(await row.getAttribute("data-outcome")).toBe("passed");
  await row.getByText("db: healthy after").waitFor();

  await page.getByText("Backups at usb").click();
  await page.locator('[data-set][data-state="complete"]').getByRole("button").click();
  const [made] = await place.client.listBackupSets("usb");
  await page
    .getByRole("dialog")
    .getByText(`hibernaut backup restore --app ${DB} --target usb --set ${made?.set} --as ${DB}-restored`)
    .waitFor();
  await page.keyboard.press("Escape");
  expect(await page.content()).not.toContain(key);
});

test("a network shows who wakes whom, and who is awake, as that changes", { timeout: LIMIT_MS }, async () => {
  const page = await openPage(browser);
  page.setDefaultTimeout(LIMIT_MS);
  await signIn(page, place);
  await goTo(page, "Networks");
  const node = page.locator(`.graph-node[data-node="${DB}"]`);
  await page.locator(`[data-from="${WEB}"][data-to="${DB}"]`).waitFor();
  await node.getByText("awake · db").waitFor();
  await place.client.suspendMachine(DB, id);
  await node.getByText("asleep · db").waitFor();
  expect(await node.locator("title").textContent()).toBe(`${DB}: asleep. Also called db. Woken by ${WEB}.`);
  await node.getByRole("link").focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: DB, level: 1 }).waitFor();
});

test("what others named is text, also in a graph, and what is wrong with backups is on the overview", async () => {
  const page = await openPage(browser);
  const error = { code: "internal", message: HTML };
  const failed_commands = [{ machine_id: "a1", app_name: HTML, reason: HTML }];
  const targets: BackupTarget[] = [
    target({
      ...{ url: HTML, overdue: true, prune_error: HTML, drills: [drill({ app_name: HTML, set: HTML, error })] },
      last: last({ state: "failed", error, failed_commands }),
    }),
  ];
  const network = { name: HTML, address: "198.18.0.1", aliases: [HTML], wakes: [HTML] };
  const app = {
    name: HTML,
    created_at: new Date().toISOString(),
    machine_count: 0,
    urls: [],
    status_page: false,
    network,
  };
  await page.route("**/v1/platform/backups/targets", (route) => route.fulfill({ json: { targets } }));
  await page.route("**/v1/apps", (route) => route.fulfill({ json: { apps: [app], total_apps: 1 } }));
  await signIn(page, place);
  await page.locator(".problem", { hasText: "Backups to nas" }).getByText("The backup is overdue").waitFor();
  for (const name of ["Backups", "Networks"]) {
    await goTo(page, name);
    await page.locator("main").getByText(HTML).first().waitFor();
    expect(await page.evaluate("window.broken")).toBeUndefined();
    expect(await page.locator("main img, main script").count()).toBe(0);
  }
});

test("a token that may only read sees backups and begins nothing, one of some apps sees neither them nor other apps", async () => {
  const page = await openPage(browser);
  const { token } = await place.client.createToken("visitor", { scopes: ["read"] });
  const url = join(await tempFolder("nas"), "repository");
  await place.client.addBackupTarget({ name: "nas", url });
  await page.goto(`${place.served.apiUrl}/backups`);
  await enterToken(page, token);
  const group = page.getByRole("group", { name: "Actions at nas" });
  for (const name of ["Back up now", "Check…", "Drill…", "Cancel"])
    expect(await group.getByRole("button", { name }).getAttribute("aria-disabled")).toBe("true");

  const other = await openPage(browser);
  const limited = await place.client.createToken("tenant", { scopes: ["admin"], apps: [WEB] });
  await other.goto(`${place.served.apiUrl}/backups`);
  await enterToken(other, limited.token);
  await other.getByText("This page needs a token for all apps.").waitFor();
  expect(await other.getByRole("link", { name: "Backups" }).count()).toBe(0);
  await goTo(other, "Networks");
  await other.locator(`.graph-node[data-node="${WEB}"]`).waitFor();
  expect(await other.locator(".graph-node").count()).toBe(1);
  await place.client.removeBackupTarget("nas");
});

test.each<[Scheme, number]>([
  ["light", 1280],
  ["dark", 380],
])(
  "both pages are accessible, %s, %d pixels wide, and do not exceed that",
  { timeout: LIMIT_MS },
  async (scheme, width) => {
    const page = await openPage(browser, { scheme, width });
    const error = { code: "unavailable", message: "there is no repository at `/mnt/usb`" };
    const bad = target({
      overdue: true,
      last: last({ state: "failed", error }),
      drills: [drill({}), drill({ app_name: "blog", error })],
    });
    await page.route("**/v1/platform/backups/targets", (route) => route.fulfill({ json: { targets: [bad] } }));
    await page.route("**/nas/sets", (route) =>
      route.fulfill({ json: { sets: [backupSet({}), backupSet({ state: "incomplete" })] } }),
    );
    await signIn(page, place);
    for (const [path, part] of [
      ["/backups", "details"],
      ["/networks", ".graph"],
    ] as const) {
      await page.goto(place.served.apiUrl + path);
      await page.locator(part).first().waitFor();
      for (const summary of await page.locator("summary").all()) await summary.click();
      await expect.poll(() => page.locator(".loading").count(), { timeout: LIMIT_MS }).toBe(0);
      await expectAccessible(page);
      expect(await wideParts(page), path).toEqual([]);
    }
  },
);
