/** A real browser, without a window. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Browser, chromium } from "playwright-core";
import { libraryPath, TEST_TOOLS } from "../../../../scripts/lib/test-tools.mjs";

const PROGRAM = "usr/lib/chromium/chromium-headless-shell";

/** Starts Debian's Chromium with an empty profile. The caller closes it. */
export function openBrowser(): Promise<Browser> {
  const unpacked = join(TEST_TOOLS, PROGRAM);
  return chromium.launch({
    executablePath: existsSync(unpacked) ? unpacked : join("/", PROGRAM),
    env: { ...process.env, LD_LIBRARY_PATH: libraries() },
    // Its sandbox needs a helper that is installed with special rights. Tests only visit their own pages.
    chromiumSandbox: false,
  });
}

/** Those of the sound server, which it is linked with, are in a directory of their own that Debian's linker knows. */
function libraries(): string {
  const folders = libraryPath().split(":");
  return [...folders, ...folders.map((folder) => join(folder, "pulseaudio"))].join(":");
}
