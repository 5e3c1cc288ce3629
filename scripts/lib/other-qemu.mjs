/**
 * A second build of the host's QEMU, as a security update would install it. Tests suspend with one and resume with the
 * other. It is unpacked and never installed.
 */
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ROOT } from "./node.mjs";
import { run } from "./run.mjs";

const PROGRAM = "qemu-system-x86";
/** QEMU's modules and firmware, which it finds relative to the program. */
const PARTS = ["qemu-system-common", "qemu-system-data", "seabios"];
const FOLDER = join(ROOT, ".build/other-qemu");
const BINARY = join(FOLDER, "usr/bin/qemu-system-x86_64");
const NEXT = "Check the network and the package sources, then run npm run setup -- --tests again.";

/** Returns the path of the second build. Undefined when the package sources have only the installed one. */
export function otherQemu() {
  return existsSync(BINARY) ? BINARY : undefined;
}

/**
 * Returns the version among `available` that is of the same series as `installed`, such as 7.2, but another build. The
 * first one, if there are several.
 *
 * @param {string} installed @param {string[]} available
 */
export function anotherBuild(installed, available) {
  const series = seriesOf(installed);
  return series && available.find((version) => version !== installed && seriesOf(version) === series);
}

/** `7.2` for `1:7.2+dfsg-7+deb12u15`. @param {string} version */
function seriesOf(version) {
  return /^(?:\d+:)?(\d+\.\d+)/.exec(version)?.[1];
}

/** Without what a rebuild appends, which packages for all architectures don't have. @param {string} version */
function sourceVersion(version) {
  return version.replace(/\+b\d+$/, "");
}

/** Unpacks it into `.build/other-qemu`, if the package sources have one. @param {import("./progress.mjs").Step} step */
export async function unpackOtherQemu(step) {
  const query = ["-W", "-f", "${Version}", PROGRAM];
  const installed = await run("dpkg-query", query).catch(() => ""); // QEMU may come from elsewhere
  const other = anotherBuild(installed, await versionsOf(PROGRAM));
  const wanted = `${installed} ${other ?? "none"}`;
  const stamp = join(FOLDER, ".unpacked");
  if ((await readFile(stamp, "utf8").catch(() => "")) === wanted) return;
  step.show();
  await mkdir(join(ROOT, ".build"), { recursive: true });
  const folder = await mkdtemp(`${FOLDER}.tmp-`);
  try {
    const tree = join(folder, "tree");
    await mkdir(tree);
    if (other !== undefined) {
      const names = [`${PROGRAM}=${other}`, ...(await Promise.all(PARTS.map((name) => pinned(name, other))))];
      // As root, apt-get downloads as the user _apt, who may not write here.
      const options = ["-q", "-o", "APT::Sandbox::User="];
      const about = { cwd: folder, onLine: step.detail, what: "apt-get download", next: NEXT };
      await run("apt-get", [...options, "download", ...names], about);
      for (const name of (await readdir(folder)).filter((each) => each.endsWith(".deb")))
        await run("dpkg-deb", ["-x", name, tree], { cwd: folder });
    }
    await writeFile(join(tree, ".unpacked"), wanted);
    await rm(FOLDER, { recursive: true, force: true });
    await rename(tree, FOLDER);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The package in the version that belongs to QEMU's, or in any, if it has versions of its own. @param {string} name @param {string} qemu */
async function pinned(name, qemu) {
  const version = (await versionsOf(name)).find((each) => each === qemu || each === sourceVersion(qemu));
  return version === undefined ? name : `${name}=${version}`;
}

/** Every version that the package sources have, newest first. @param {string} name @returns {Promise<string[]>} */
async function versionsOf(name) {
  const lines = (await run("apt-cache", ["madison", name]).catch(() => "")).split("\n");
  return lines.map((line) => line.split("|")[1]?.trim() ?? "").filter((version) => version !== "");
}
