/** Debian packages: which are needed and why, which are missing, and how they come. */
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ROOT } from "./node.mjs";
import { ask, run, SetupError } from "./run.mjs";
import { TEST_TOOLS } from "./test-tools.mjs";

/**
 * Every package with its reason. Programs of packages that Debian marks essential (bash, dpkg, util-linux) are there.
 *
 * @type {Record<string, string>}
 */
export const PACKAGES = {
  "qemu-system-x86": "runs the machines",
  skopeo: "fetches images from registries and archives",
  umoci: "unpacks images",
  "squashfs-tools": "makes root file systems of images",
  e2fsprogs: "makes the machines' writable layers",
  iproute2: "makes the machines' network",
  nftables: "keeps machines apart in the network",
  gcc: "builds the agent inside the machines",
  "libc6-dev": "the C library the agent is linked with",
  cpio: "packs the machines' initramfs",
  "xz-utils": "unpacks the kernel modules of Debian 13 and later",
  zstd: "unpacks the kernel modules of Ubuntu",
  kmod: "orders the kernel modules for the initramfs",
  tar: "unpacks and packs archives",
  "ca-certificates": "lets registries prove who they are",
};

/** Only for `npm test` and the benches. Unpacked, not installed: as installed services they would run and listen. */
const TEST_PACKAGES = {
  "docker-registry": "a real registry to import images from",
  // Whatever version the distribution has: 15 or newer wherever the platform runs.
  postgresql: "a real PostgreSQL for the orders service",
  curl: "speaks to the platform from inside a machine",
  nginx: "the proxy that ours is held against",
  haproxy: "another one, which frames messages more strictly",
  wrk: "makes the load of the benches",
  debootstrap: "makes bare systems to try the set-up on",
};

const APT_ENVIRONMENT = ["DEBIAN_FRONTEND=noninteractive", "NEEDRESTART_SUSPEND=1"];
const RETRY = "Check the network and the package sources, then run npm run setup again.";
/** Another apt may be at work (unattended upgrades): wait for it for two minutes. */
const APT_OPTIONS = ["-q", "-o", "DPkg::Lock::Timeout=120"];

/**
 * Those of `names` that are not installed. Asks dpkg once.
 *
 * @param {string[]} names
 * @returns {Promise<string[]>}
 */
export async function missingPackages(names) {
  // Ends with code 1 when dpkg never heard of one of them, which is an answer too.
  const script = 'dpkg-query -W -f="\\${Package} \\${db:Status-Status}\\n" "$@" 2>/dev/null || true';
  const output = await run("sh", ["-c", script, "dpkg-query", ...names]);
  const installed = new Set(
    output
      .split("\n")
      .filter((line) => line.endsWith(" installed"))
      .map((line) => line.split(" ")[0]),
  );
  return names.filter((name) => !installed.has(name));
}

/**
 * Installs what is missing, as root or with sudo. Throws a SetupError that names the command to run by hand.
 *
 * @param {import("./progress.mjs").Progress} progress
 * @param {import("./progress.mjs").Step} step
 */
export async function installPackages(progress, step) {
  const missing = await missingPackages(Object.keys(PACKAGES));
  if (missing.length === 0) return;
  step.say("These Debian packages are missing and will be installed:");
  for (const name of missing) step.say(`  ${name.padEnd(18)}${PACKAGES[name]}`);
  const install = ["install", "-y", "--no-install-recommends", ...missing];
  const prefix = await rootPrefix(progress, ["apt-get update", `apt-get ${install.join(" ")}`]);
  step.show();
  const updateFault = await aptGet(prefix, ["update"], step).then(
    () => undefined,
    (/** @type {Error} */ error) => error,
  );
  try {
    await aptGet(prefix, install, step);
  } catch (error) {
    // A source that is down does not matter unless a package was to come from it.
    throw updateFault ? new SetupError(`${updateFault.message}\n${/** @type {Error} */ (error).message}`) : error;
  }
  const left = await missingPackages(missing);
  if (left.length > 0)
    throw new SetupError(
      `apt-get installed no ${left.join(", ")}. Install by hand: sudo apt-get install ${left.join(" ")}`,
    );
}

/**
 * Brings the packages that only tests need to `.build/test-tools`.
 *
 * @param {import("./progress.mjs").Step} step
 */
export async function unpackTestPackages(step) {
  const wanted = Object.keys(TEST_PACKAGES).join("\n");
  const stamp = join(TEST_TOOLS, ".packages");
  if ((await readFile(stamp, "utf8").catch(() => "")) === wanted) return;
  step.show();
  await mkdir(join(ROOT, ".build"), { recursive: true });
  const folder = await mkdtemp(`${TEST_TOOLS}.tmp-`);
  try {
    const onLine = step.detail;
    // With all that they need and that is not installed, but nothing is installed: the folder is ours, so no lock is needed.
    await mkdir(join(folder, "partial"));
    const own = ["-o", `Dir::Cache::archives=${folder}`, "-o", "Debug::NoLocking=1", "-o", "APT::Sandbox::User="];
    const download = ["install", "-y", "--download-only", "--no-install-recommends"];
    const names = await missingPackages(Object.keys(TEST_PACKAGES));
    if (names.length > 0) {
      await run("apt-get", [...APT_OPTIONS, ...own, ...download, ...names], {
        cwd: folder,
        onLine,
        what: "apt-get download",
        next: RETRY,
      });
    }
    await mkdir(join(folder, "tools"));
    const packages = (await readdir(folder)).filter((name) => name.endsWith(".deb"));
    for (const name of packages) await run("dpkg-deb", ["-x", name, "tools"], { cwd: folder });
    await writeFile(join(folder, "tools/.packages"), wanted);
    await rm(TEST_TOOLS, { recursive: true, force: true });
    await rename(join(folder, "tools"), TEST_TOOLS);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * What to put before a command that needs root. sudo asks for its password here, before a live line is drawn.
 *
 * @param {import("./progress.mjs").Progress} progress
 * @param {string[]} commands What the owner can run instead.
 * @returns {Promise<string[]>}
 */
async function rootPrefix(progress, commands) {
  if (process.getuid?.() === 0) return [];
  progress.pause();
  const mayAsk = process.stdin.isTTY && process.stderr.isTTY;
  if (await ask("sudo", mayAsk ? ["-v"] : ["-n", "true"])) return ["sudo", "-n"];
  const sudo = existsSync("/usr/bin/sudo");
  const why = sudo ? "sudo refused. Run this" : "there is no sudo. Run this as root";
  const command = commands.map((text) => `${sudo ? "sudo " : ""}${text}`).join(" && ");
  throw new SetupError(`Installing packages needs root, and ${why}, then npm run setup again:\n  ${command}`);
}

/**
 * @param {string[]} prefix
 * @param {string[]} args
 * @param {import("./progress.mjs").Step} step
 */
async function aptGet(prefix, args, step) {
  const command = [...prefix, "env", ...APT_ENVIRONMENT, "apt-get", ...APT_OPTIONS, ...args];
  await run(String(command[0]), command.slice(1), { onLine: step.detail, what: `apt-get ${args[0]}`, next: RETRY });
}
