/** A real browser, without a window. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, rename, stat } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Browser, chromium } from "playwright-core";
import { libraryPath, TEST_TOOLS } from "../../../../scripts/lib/test-tools.mjs";

const PROGRAM = "usr/lib/chromium/chromium-headless-shell";

const run = promisify(execFile);
const NO_NETLINK = join(import.meta.dirname, "no-netlink.c");
const BUILT = join(import.meta.dirname, "../../../../.build/test-helpers");

/** Starts Debian's Chromium with an empty profile. It hears nothing of network interfaces. The caller closes it. */
export async function openBrowser(args: string[] = []): Promise<Browser> {
  const unpacked = join(TEST_TOOLS, PROGRAM);
  return chromium.launch({
    args,
    executablePath: existsSync(unpacked) ? unpacked : join("/", PROGRAM),
    env: { ...process.env, LD_LIBRARY_PATH: libraries(), LD_PRELOAD: await noNetlink() },
    // Its sandbox needs a helper that is installed with special rights. Tests only visit their own pages.
    chromiumSandbox: false,
  });
}

/** Compiles {@link NO_NETLINK}, unless that is done. */
async function noNetlink(): Promise<string> {
  const library = join(BUILT, "no-netlink.so");
  const [source, built] = await Promise.all([stat(NO_NETLINK), stat(library).catch(() => undefined)]);
  if (built !== undefined && built.mtimeMs > source.mtimeMs) return library;
  await mkdir(BUILT, { recursive: true });
  // Several tests may do this at once.
  const own = `${library}.${process.pid}`;
  await run("cc", ["-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", own, NO_NETLINK]);
  await rename(own, library);
  return library;
}

/** Those of the sound server, which it is linked with, are in a directory of their own that Debian's linker knows. */
function libraries(): string {
  const folders = libraryPath().split(":");
  return [...folders, ...folders.map((folder) => join(folder, "pulseaudio"))].join(":");
}
