#!/usr/bin/env node
/**
 * `npm run screenshots`: takes pictures of every page of the dashboard, light and dark, of a platform of its own with real
 * machines that sleep and wake meanwhile.
 *
 * `npm run screenshots [-- --out DIR]`; the default directory is `.build/screenshots`. Prints what it wrote.
 */
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { openBrowser } from "../packages/platform/test/helpers/browser.ts";
import { ROOT } from "./lib/node.mjs";
import { startOwnPlatform } from "./lib/own-platform.mjs";
import { createProgress } from "./lib/progress.mjs";
import { setup } from "./setup.mjs";

const IMAGE = `oci:${join(ROOT, ".build/counter")}:latest`;
const SIZE = { width: 1280, height: 800 };
/** Apps with their machines, and what becomes of each machine before the pictures are taken. */
const MACHINES = [
  { app: "shop", name: "web-1", ways: ["suspend", "start", "suspend", "start"] },
  { app: "shop", name: "web-2", ways: ["suspend", "start", "suspend"] },
  { app: "blog", name: "web", ways: ["suspend"] },
  { app: "jobs", name: "nightly", ways: ["stop"] },
  { app: "jobs", name: "broken", ways: [], command: ["node", "-e", "process.exit(3)"] },
];
/** What a way leads to. */
const REACHED = { suspend: "suspended", start: "running", stop: "stopped" };

const { values: options } = parseArgs({ options: { out: { type: "string" } } });
const out = resolve(options.out ?? join(ROOT, ".build/screenshots"));

await setup({ quiet: true, tests: true });
const progress = createProgress(2, { everyStep: true });
// The user network needs no root.
const platform = await startOwnPlatform({ HIBERNAUT_NETWORK: "user" });
const apps = [...new Set(MACHINES.map(({ app }) => app))];
try {
  for (const app of apps) await platform.call("POST", "/apps", { app_name: app });
  const ids = await progress.step("machines", () => Promise.all(MACHINES.map(makeMachine)));
  await mkdir(out, { recursive: true });
  const files = await progress.step("pictures", () => takePictures(ids[0] ?? ""));
  process.stdout.write(`${files.join("\n")}\n`);
} finally {
  for (const app of apps) await platform.call("DELETE", `/apps/${app}?force=true`).catch(() => {});
  await platform.close();
}

/**
 * Creates a machine, leads it through its states, and returns its id.
 *
 * @param {typeof MACHINES[number]} machine
 */
async function makeMachine({ app, name, ways, command }) {
  const config = {
    image: IMAGE,
    services: [{ internal_port: 8080, autostop: "off" }],
    restart: { policy: "no" },
    ...(command && { init: { exec: command } }),
  };
  const { machine_id: id } = await platform.call("POST", `/apps/${app}/machines`, { name, config });
  const path = `/apps/${app}/machines/${id}`;
  await platform.call("GET", `${path}/wait?state=settled&timeout=300`);
  for (const way of /** @type {(keyof typeof REACHED)[]} */ (ways)) {
    await platform.call("POST", `${path}/${way}`);
    await platform.call("GET", `${path}/wait?state=${REACHED[way]}&timeout=300`);
  }
  return id;
}

/** @param {string} id of the machine that has a picture */
async function takePictures(id) {
  const pages = {
    overview: "/",
    app: "/apps/shop",
    machine: `/apps/shop/machines/${id}`,
    networks: "/networks",
    backups: "/backups",
    host: "/host",
    tokens: "/tokens",
    audit: "/audit",
  };
  const browser = await openBrowser();
  /** @type {string[]} */
  const files = [];
  try {
    for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
      const page = await (await browser.newContext({ colorScheme, viewport: SIZE })).newPage();
      const take = async (/** @type {string} */ name) => {
        const path = join(out, `${name}-${colorScheme}.png`);
        await page.screenshot({ path });
        files.push(path);
      };
      await page.goto(platform.apiUrl);
      await page.getByLabel("Token").waitFor();
      await take("sign-in");
      await page.getByLabel("Token").fill(platform.token);
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: "Overview" }).waitFor();
      for (const [name, path] of Object.entries(pages)) {
        await page.goto(new URL(path, platform.apiUrl).href);
        await page.locator("h1").waitFor();
        // The stream of events keeps the network busy, so this waits for what is visibly being loaded, part by part.
        while ((await page.locator(".loading").count()) > 0)
          await page.locator(".loading").first().waitFor({ state: "detached" });
        await take(name);
      }
    }
  } finally {
    await browser.close();
  }
  return files;
}
