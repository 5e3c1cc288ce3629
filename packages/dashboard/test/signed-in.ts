/** A browser at the dashboard of a real platform. */
import { createRequire } from "node:module";
import type { Browser, Page } from "playwright-core";
import { expect, onTestFinished } from "vitest";
import type { Place } from "../../platform/test/helpers/served.ts";

/** The accessibility checker, as a script for the page. */
const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const SERIOUS = ["serious", "critical"];

export type Scheme = "light" | "dark";

/** A page that says what its policy refused, and what broke in it. */
export interface Watched {
  page: Page;
  /** Violations of the policy, and errors of scripts. */
  faults: string[];
}

interface WatchOptions {
  scheme?: Scheme;
  width?: number;
}

/** Opens an empty page. Its faults are collected from the beginning. */
export async function watchedPage(
  browser: Browser,
  { scheme = "light", width = 1280 }: WatchOptions = {},
): Promise<Watched> {
  const context = await browser.newContext({ colorScheme: scheme, viewport: { width, height: 900 } });
  const page = await context.newPage();
  const faults: string[] = [];
  page.on(
    "console",
    (message) => /Content Security Policy|Refused to/.test(message.text()) && faults.push(message.text()),
  );
  await page.exposeFunction("refusedByPolicy", (what: string) => void faults.push(what));
  await page.addInitScript(
    `document.addEventListener("securitypolicyviolation", (event) => refusedByPolicy("policy: " + event.violatedDirective));`,
  );
  page.on("pageerror", (error) => faults.push(String(error)));
  return { page, faults };
}

/** Opens an empty page for one test, which fails if the page has faults. */
export async function openPage(browser: Browser, options?: WatchOptions): Promise<Page> {
  const { page, faults } = await watchedPage(browser, options);
  onTestFinished(async () => {
    await page.context().close();
    expect(faults).toEqual([]);
  });
  return page;
}

/** Types a token into the page that asks for one. */
export async function enterToken(page: Page, token: string): Promise<void> {
  await page.getByLabel("Token").fill(token);
  await page.keyboard.press("Enter");
}

/** Signs in at the platform's own address, or at `url`, which leads to it. */
export async function signIn(page: Page, place: Place, url = place.served.apiUrl): Promise<void> {
  await page.goto(url);
  await enterToken(page, await place.token());
  await page.getByRole("heading", { name: "Overview" }).waitFor();
}

/** Expects that the accessibility checker finds nothing serious on the page as it is. */
export async function expectAccessible(page: Page): Promise<void> {
  // Not as a script element, which the page's policy refuses.
  const { readFile } = await import("node:fs/promises");
  await page.evaluate(await readFile(AXE, "utf8"));
  const found = (await page.evaluate("axe.run(document, { resultTypes: ['violations'] })")) as {
    violations: { id: string; impact: string; nodes: { html: string; failureSummary: string }[] }[];
  };
  const serious = found.violations
    .filter(({ impact }) => SERIOUS.includes(impact))
    .map(({ id, nodes }) => [id, ...nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`)]);
  expect(serious).toEqual([]);
}

/** Returns what makes the page wider than its window. */
export async function wideParts(page: Page): Promise<unknown> {
  return await page.evaluate(`
    document.documentElement.scrollWidth <= innerWidth
      ? []
      : [...document.body.querySelectorAll("*")]
          .filter((element) => element.getBoundingClientRect().right > innerWidth && !element.closest(".scroll > *"))
          .map((element) => element.tagName + "." + element.getAttribute("class"))
  `);
}
