#!/usr/bin/env node
/**
 * `npm run screenshots`: takes pictures of every page of the dashboard, light and dark, of a platform of its own with real
 * machines that sleep and wake meanwhile.
 *
 * `npm run screenshots [-- --out DIR]`; the default directory is `.build/screenshots`. Prints what it wrote.
 */
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { openBrowser } from "../packages/platform/test/helpers/browser.ts";
import { ROOT } from "./lib/node.mjs";
import { startPlatform } from "./lib/platform.mjs";
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
const dataDir = await mkdtemp(join(tmpdir(), "hibernaut-screenshots-"));
Object.assign(process.env, {
  HIBERNAUT_DATA_DIR: dataDir,
  XDG_CONFIG_HOME: join(dataDir, "cfg"),
  HIBERNAUT_API_LISTEN: "127.0.0.1:0",
  HIBERNAUT_PROXY_LISTEN: "127.0.0.1:0",
  // Needs no root and leaves no bridge behind.
  HIBERNAUT_NETWORK: "user",
});
const progress = createProgress(2, { everyStep: true });
const platform = await startPlatform();
const apps = [...new Set(MACHINES.map(({ app }) => app))];
try {
  for (const app of apps) await platform.call("POST", "/apps", { app_name: app });
  const ids = await progress.step("machines", () => Promise.all(MACHINES.map(makeMachine)));
  const { api_token: token } = JSON.parse(await readFile(join(dataDir, "config.json"), "utf8"));
  await mkdir(out, { recursive: true });
  const files = await progress.step("pictures", () => takePictures(token, ids[0] ?? ""));
  process.stdout.write(`${files.join("\n")}\n`);
} finally {
  for (const app of apps) await platform.call("DELETE", `/apps/${app}?force=true`).catch(() => {});
  await platform.stop();
  await rm(dataDir, { recursive: true, force: true });
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

/** @param {string} token @param {string} id of the machine that has a picture */
async function takePictures(token, id) {
  const pages = {
    overview: "/",
    app: "/apps/shop",
    machine: `/apps/shop/machines/${id}`,
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
      await page.getByLabel("Token").fill(token);
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
