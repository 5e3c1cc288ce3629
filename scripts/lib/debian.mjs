/** Debian packages: which ones Hibernaut needs and why, which are missing, and how they are installed. */
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ROOT } from "./node.mjs";
import { ask, run, SetupError } from "./run.mjs";
import { TEST_TOOLS } from "./test-tools.mjs";

/**
 * Every package with its reason. Packages that Debian marks as essential (bash, dpkg, util-linux) are always installed.
 *
 * @type {Record<string, string>}
 */
export const PACKAGES = {
  "qemu-system-x86": "runs the machines",
  skopeo: "fetches images from archives and Docker",
  umoci: "makes images for the tests",
  "squashfs-tools": "turns images into root file systems",
  e2fsprogs: "makes the machines' writable layers",
  iproute2: "makes the machines' network",
  nftables: "keeps machines apart on the network",
  gcc: "compiles the agent that runs in the machines",
  "libc6-dev": "has the C library that the agent is linked with",
  cpio: "packs the machines' initramfs",
  lz4: "unpacks the machines' kernel",
  "xz-utils": "unpacks the kernel modules of Debian 13 and later",
  zstd: "unpacks the kernel modules of Ubuntu",
  kmod: "orders the kernel modules for the initramfs",
  tar: "packs and unpacks archives",
  "ca-certificates": "verifies the certificates of registries",
};

/** Only for `npm test` and the benches. Unpacked, not installed: installing them would start services that listen. */
const TEST_PACKAGES = {
  "docker-registry": "a real registry to pull images from",
  // Any version will do: the distributions that the platform supports have 15 or newer.
  postgresql: "a real PostgreSQL for the orders service",
  pebble: "a certificate authority that speaks ACME",
  "etcd-server": "where the hosts of a cluster agree",
  curl: "calls the platform from inside a machine",
  nginx: "the proxy that we compare ours with",
  haproxy: "another proxy, which is stricter about framing",
  caddy: "the proxy that most would pick instead of ours",
  wrk: "generates the load for the benches",
  zsh: "a shell to try the completion in",
  fish: "another shell to try the completion in",
  "chromium-headless-shell": "a browser that waits for a machine",
  buildah: "builds Dockerfiles without a daemon",
  python3: "goes into the images of Python apps",
  prometheus: "reads the metrics, and checks the alerts",
  restic: "stores backups elsewhere",
  "swift-proxy": "a real server that speaks S3",
  "swift-account": "keeps what that server knows of accounts",
  "swift-container": "keeps what it knows of buckets",
  "swift-object": "keeps what is stored there",
  memcached: "keeps what it knows for a moment",
  "openssh-server": "a real server that speaks SFTP",
  "redis-server": "a cache for projects of several services",
  "mariadb-server-core": "another database for them",
  "python3-pymysql": "how a Python app talks to it",
  debootstrap: "creates bare systems to try the setup on",
};

const APT_ENVIRONMENT = ["DEBIAN_FRONTEND=noninteractive", "NEEDRESTART_SUSPEND=1"];
const RETRY = "Check the network and the package sources, then run npm run setup again.";
/** Another apt may be running (unattended upgrades): wait up to two minutes for it. */
const APT_OPTIONS = ["-q", "-o", "DPkg::Lock::Timeout=120"];

/**
 * Returns the packages among `names` that are not installed. Runs dpkg once.
 *
 * @param {string[]} names
 * @returns {Promise<string[]>}
 */
async function missingPackages(names) {
  // Exits with code 1 if dpkg does not know one of them, which is an answer, too.
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
 * Installs what is missing, as root or with sudo. If it cannot, throws a SetupError with the command to run by hand.
 *
 * @param {import("./progress.mjs").Progress} progress
 * @param {import("./progress.mjs").Step} step
 */
export async function installPackages(progress, step) {
  const missing = await missingPackages(Object.keys(PACKAGES));
  if (missing.length === 0) return;
  step.say("Installing these missing Debian packages:");
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
    // A package source that is down matters only if a package had to come from it.
    throw updateFault ? new SetupError(`${updateFault.message}\n${/** @type {Error} */ (error).message}`) : error;
  }
  const left = await missingPackages(missing);
  if (left.length > 0)
    throw new SetupError(
      `apt-get did not install ${left.join(", ")}. Install by hand: sudo apt-get install ${left.join(" ")}`,
    );
}

/**
 * Unpacks the packages that only tests need into `.build/test-tools`.
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
    // Downloads their missing dependencies, too, and installs nothing. The directory is ours, so no lock is needed.
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
 * Returns what to put before a command that needs root. sudo asks for its password here, before a live line is drawn.
 *
 * @param {import("./progress.mjs").Progress} progress
 * @param {string[]} commands What the user can run instead.
 * @returns {Promise<string[]>}
 */
async function rootPrefix(progress, commands) {
  if (process.getuid?.() === 0) return [];
  progress.pause();
  const mayAsk = process.stdin.isTTY && process.stderr.isTTY;
  if (await ask("sudo", mayAsk ? ["-v"] : ["-n", "true"])) return ["sudo", "-n"];
  const sudo = existsSync("/usr/bin/sudo");
  const why = sudo ? "sudo refused. Run this" : "sudo is not installed. Run this as root";
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
