/** Checks what the platform needs from its host, and names a command to repair each fault. */
import { constants } from "node:fs";
import { access, mkdtemp, rm, stat, statfs, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { GuestBundle } from "@hibernaut/domain/guest-bundle";
import { readBundle } from "@hibernaut/guest/bundles";
import type { AcceleratorChoice } from "@hibernaut/hypervisor/qemu/accelerator";
import { run } from "@hibernaut/lib/exec";
import { messageOf } from "@hibernaut/lib/text";
import { LONGEST_SOCKET, MAX_SOCKET_PATH, type Settings } from "@hibernaut/settings";
import type { Sleepers } from "./doctor-sleepers.ts";

/** The outcome of one check. */
export interface Diagnosis {
  name: string;
  /** `warn` means that the platform works, but not as well as it could. */
  status: "ok" | "warn" | "fail";
  /** What was found, for people. */
  found: string;
  /** A command that repairs the fault. */
  fix?: string;
}

const TOOL_TIMEOUT_MS = 10_000;
/** What starting and ending QEMU may add to the proof of KVM. */
const PROOF_MARGIN_MS = 60_000;
const NODE_MAJOR = 24;
/** Room for an image, a writable layer and a snapshot of a small machine. */
const COMFORTABLE_BYTES = 4 * 1024 ** 3;

/** The programs that the platform runs, how to ask for their version, and their Debian packages. */
const TOOLS = [
  { name: "skopeo", args: ["--version"], package: "skopeo", for: "copies images that are not in a registry" },
  { name: "sqfstar", args: ["-version"], package: "squashfs-tools", for: "packs root file systems" },
  { name: "mkfs.ext4", args: ["-V"], package: "e2fsprogs", for: "makes writable layers" },
  { name: "setpriv", args: ["--version"], package: "util-linux", for: "ends imports with the platform" },
] as const;

/** What the bridge network needs in addition to root. */
const NETWORK_TOOLS = [
  { name: "ip", args: ["-Version"], package: "iproute2", for: "makes the machines' network" },
  { name: "nft", args: ["--version"], package: "nftables", for: "keeps machines apart" },
] as const;

/**
 * Checks the host, in the order in which repairs make sense. Never rejects: a check that cannot be made counts as failed.
 *
 * @example
 * for await (const check of diagnose(settings)) console.log(check.status, check.name, check.found);
 */
export async function* diagnose(settings: Settings): AsyncIterable<Diagnosis> {
  yield checkNode(process.versions.node);
  yield await checkQemu(settings.qemu);
  for (const tool of TOOLS) yield await checkTool(tool);
  const sleepers = await sleepersOf(settings.dataDir);
  yield* checkNetwork(settings.network, typeof sleepers === "string" ? undefined : sleepers.bound);
  yield checkSocketPath(settings.dataDir);
  yield await checkDataDir(settings.dataDir);
  yield await checkDisk(settings.dataDir);
  yield* checkVolumes(settings.dataDir);
  yield* checkCertificates(settings.dataDir);
  yield* checkQuotas(settings);
  yield* checkEtcd(settings.dataDir);
  const bundle = await builtBundle(settings.guestBundle);
  yield typeof bundle === "string"
    ? { name: "guest bundle", status: "fail", found: bundle, fix: "npm run setup" }
    : { name: "guest bundle", status: "ok", found: `version ${bundle.version} in ${settings.guestBundle}` };
  yield await checkKvmDevice();
  if (typeof bundle === "string") return;
  const { verdict, ...diagnosis } = await checkAccelerator(settings, bundle);
  yield diagnosis;
  yield await checkJail(settings, verdict?.accelerator ?? "tcg");
  if (verdict !== undefined) yield await checkSnapshots(sleepers, settings, { bundle, ...verdict });
}

/** Checks that this version of Node runs TypeScript and has what the platform uses. */
export function checkNode(version: string): Diagnosis {
  const ok = Number(version.split(".")[0]) >= NODE_MAJOR;
  return ok
    ? { name: "node", status: "ok", found: version }
    : { name: "node", status: "fail", found: `${version}, older than ${NODE_MAJOR}`, fix: "npm run setup" };
}

/** Checks that the data directory's path is short enough for the sockets of machines. */
export function checkSocketPath(dataDir: string): Diagnosis {
  const name = "socket path";
  const length = Buffer.byteLength(dataDir + LONGEST_SOCKET);
  const found = `${length} of ${MAX_SOCKET_PATH} bytes`;
  if (length <= MAX_SOCKET_PATH) return { name, status: "ok", found };
  return {
    name,
    status: "fail",
    found: `${found}: ${dataDir} is too long for sockets`,
    fix: "export HIBERNAUT_DATA_DIR=/var/lib/hibernaut",
  };
}

async function checkQemu(program: string): Promise<Diagnosis> {
  // Loaded late, here and below, so that one broken part does not keep the others from being checked.
  try {
    const { qemuVersion } = await import("@hibernaut/hypervisor/qemu/accelerator");
    return { name: "qemu", status: "ok", found: await qemuVersion(program) };
  } catch (error) {
    return { name: "qemu", status: "fail", found: messageOf(error), fix: "apt-get install -y qemu-system-x86" };
  }
}

/** `bound` is the mode that the machines of the data directory belong to. */
async function* checkNetwork(
  mode: Settings["network"],
  bound: "user" | "bridge" | undefined,
): AsyncIterable<Diagnosis> {
  const name = "network";
  const root = process.getuid?.() === 0;
  const free = mode === "auto" && bound === undefined;
  if (mode === "user" || (mode === "auto" && bound === "user") || (free && !root)) {
    const why =
      mode === "user"
        ? "as configured"
        : bound === "user"
          ? "to which the machines of the data directory belong"
          : "because a bridge needs root";
    yield { name, status: free ? "warn" : "ok", found: `user mode, ${why}; see docs/network.md` };
    return;
  }
  if (!root) {
    const found = mode === "auto" ? "the machines belong to a bridge, which needs root" : "a bridge needs root";
    const fix = mode === "auto" ? "run the platform as root" : "export HIBERNAUT_NETWORK=user";
    yield { name, status: "fail", found, fix };
  }
  // Without them, `auto` falls back to user mode, as long as there are no machines.
  const soften = ({ status, ...rest }: Diagnosis): Diagnosis => ({
    ...rest,
    status: status === "fail" && free ? "warn" : status,
  });
  for (const tool of NETWORK_TOOLS) yield soften(await checkTool(tool));
  yield soften(await checkTun());
  if (root) yield await checkFlowLimits();
}

/** Whether the kernel can count what each machine opens. Without nft, nothing is known. */
async function checkFlowLimits(): Promise<Diagnosis> {
  const name = "connections";
  try {
    const { acceptsRuleset } = await import("@hibernaut/network/bridge/commands");
    const { FLOW_PROBE } = await import("@hibernaut/network/bridge/limits");
    if (await acceptsRuleset(FLOW_PROBE)) return { name, status: "ok", found: "the kernel can count a machine's" };
    const found = "the kernel cannot count a machine's, so one machine can fill the host's table of them";
    return { name, status: "warn", found, fix: "modprobe nft_connlimit" };
  } catch (error) {
    return { name, status: "warn", found: messageOf(error) };
  }
}

async function checkTun(): Promise<Diagnosis> {
  const name = "/dev/net/tun";
  try {
    await access(name, constants.R_OK | constants.W_OK);
    return { name, status: "ok", found: "can be opened" };
  } catch (error) {
    return { name, status: "fail", found: messageOf(error), fix: "modprobe tun" };
  }
}

async function checkTool(tool: (typeof TOOLS | typeof NETWORK_TOOLS)[number]): Promise<Diagnosis> {
  const { name } = tool;
  try {
    const { stdout, stderr } = await run(name, tool.args, { timeoutMs: TOOL_TIMEOUT_MS });
    const [line = ""] = `${stdout}\n${stderr}`.trim().split("\n");
    return { name, status: "ok", found: line.trim() };
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === "ENOENT";
    const found = missing ? `not installed; it ${tool.for}` : messageOf(error);
    return { name, status: "fail", found, fix: `apt-get install -y ${tool.package}` };
  }
}

async function checkDataDir(dataDir: string): Promise<Diagnosis> {
  const name = "data directory";
  const probe = join(dataDir, `.doctor-${process.pid}`);
  try {
    const folder = await existing(dataDir);
    // The first start makes a missing directory; a check makes nothing.
    if (folder === dataDir) await writeFile(probe, "");
    else await access(folder, constants.W_OK);
    return { name, status: "ok", found: folder === dataDir ? dataDir : `${dataDir} (will be created)` };
  } catch (error) {
    const fix = (await isForeign(dataDir))
      ? 'it belongs to another user; use your own: export HIBERNAUT_DATA_DIR="$HOME/.local/share/hibernaut"'
      : `install -d -m 700 -o "$(id -un)" ${dataDir}`;
    return { name, status: "fail", found: messageOf(error), fix };
  } finally {
    await rm(probe, { force: true }).catch(() => {});
  }
}

/** Whether a directory exists, or might exist where we may not look, and belongs to another user. */
function isForeign(folder: string): Promise<boolean> {
  return stat(folder).then(
    ({ uid }) => uid !== process.getuid?.(),
    (error: NodeJS.ErrnoException) => error.code === "EACCES",
  );
}

async function checkDisk(dataDir: string): Promise<Diagnosis> {
  const name = "disk";
  try {
    const { bavail, bsize } = await statfs(await existing(dataDir));
    const found = `${((bavail * bsize) / 1024 ** 3).toFixed(1)} GB free`;
    if (bavail * bsize >= COMFORTABLE_BYTES) return { name, status: "ok", found };
    return {
      name,
      status: "warn",
      found: `${found}; a snapshot needs as much space as its machine has memory`,
      fix: `du -xh --max-depth=2 ${dataDir} | sort -h | tail`,
    };
  } catch (error) {
    return { name, status: "fail", found: messageOf(error), fix: `df -h ${dataDir}` };
  }
}

async function checkKvmDevice(): Promise<Diagnosis> {
  const name = "/dev/kvm";
  try {
    await access("/dev/kvm", constants.R_OK | constants.W_OK);
    return { name, status: "ok", found: "can be opened" };
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === "ENOENT";
    const found = missing
      ? "missing; machines run in software emulation, about ten times slower"
      : "this user may not open it";
    return {
      name,
      status: "warn",
      found,
      fix: missing ? "modprobe kvm_intel || modprobe kvm_amd" : 'usermod -aG kvm "$(id -un)"',
    };
  }
}

async function checkAccelerator(
  settings: Settings,
  bundle: GuestBundle,
): Promise<Diagnosis & { verdict?: AcceleratorChoice }> {
  const name = "accelerator";
  const folder = await mkdtemp(join(tmpdir(), "hibernaut-doctor-"));
  try {
    const { proveAccelerator } = await import("@hibernaut/hypervisor/qemu/accelerator");
    // The verdict is stored for the platform if its data directory exists; a check does not make one.
    const dataDir = (await existing(settings.dataDir)) === settings.dataDir ? settings.dataDir : folder;
    const signal = AbortSignal.timeout(settings.kvmProofTimeoutMs + PROOF_MARGIN_MS * settings.slowFactor);
    const verdict = await proveAccelerator({ ...settings, dataDir }, bundle, signal);
    const { accelerator, reason } = verdict;
    const chosen = settings.accelerator === accelerator;
    const status = accelerator === "kvm" || chosen ? "ok" : "warn";
    return { name, status, found: `${accelerator}: ${reason}`, verdict };
  } catch (error) {
    return { name, status: "fail", found: messageOf(error), fix: "export HIBERNAUT_ACCELERATOR=tcg" };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function checkJail(settings: Settings, accelerator: "kvm" | "tcg"): Promise<Diagnosis> {
  const name = "jail";
  try {
    const { findJail } = await import("@hibernaut/hypervisor/qemu/jail/find");
    const { found, lacks } = await findJail({ ...settings, accelerator, look: true });
    if (lacks.length === 0 || settings.jail === "off")
      return { name, status: lacks.length === 0 ? "ok" : "warn", found };
    return { name, status: "warn", found: `${found}; it lacks ${lacks.join("; ")}. See docs/security.md` };
  } catch (error) {
    return { name, status: "fail", found: messageOf(error), fix: "export HIBERNAUT_JAIL=auto" };
  }
}

/** The machines of the data directory and their network mode, or why they cannot be read. */
type FoundSleepers = (Sleepers & { bound: "user" | "bridge" | undefined }) | string;

async function sleepersOf(dataDir: string): Promise<FoundSleepers> {
  try {
    const { findSleepers, modeOfSleepers } = await import("./doctor-sleepers.ts");
    const sleepers = await findSleepers(dataDir);
    return { ...sleepers, bound: modeOfSleepers(sleepers) };
  } catch (error) {
    return messageOf(error);
  }
}

/** Whether scheduled snapshots of volumes are taken. Nothing without any. */
async function* checkVolumes(dataDir: string): AsyncIterable<Diagnosis> {
  const name = "volumes";
  try {
    const { readScheduledVolumes } = await import("@hibernaut/store/read-volumes");
    const volumes = readScheduledVolumes(join(dataDir, "hibernaut.db"));
    if (volumes.length === 0) return;
    const [first, ...others] = volumes.filter(({ schedule }) => schedule.trouble !== null);
    if (first === undefined) {
      yield { name, status: "ok", found: `${volumes.length} with scheduled snapshots, none late` };
      return;
    }
    const late = [first, ...others].map(({ id }) => id);
    yield {
      name,
      status: "warn",
      found: `the scheduled snapshot of ${late.length} of ${volumes.length} volumes is late: ${late.join(", ")}. ${first.schedule.trouble?.reason ?? ""}`,
      fix: `hibernaut volumes show ${first.id} --app ${first.app}`,
    };
  } catch (error) {
    yield { name, status: "warn", found: `the volumes cannot be read: ${messageOf(error)}` };
  }
}

/** Whether certificates can be had and renewed. Nothing without any. */
async function* checkCertificates(dataDir: string): AsyncIterable<Diagnosis> {
  const name = "certificates";
  try {
    const { readManagedCertificates } = await import("@hibernaut/store/read-certificates");
    const managed = readManagedCertificates(join(dataDir, "hibernaut.db"));
    if (managed.length === 0) return;
    const [first, ...others] = managed.filter(({ failure }) => failure !== null);
    if (first === undefined) {
      yield { name, status: "ok", found: `${managed.length} managed, and the last order of each succeeded` };
      return;
    }
    const late = [first, ...others].map((each) => each.name);
    const until = await expiry(dataDir, first.name);
    const has = until === undefined ? "has none" : `has one until ${new Date(until).toISOString()}`;
    yield {
      name,
      status: "warn",
      found: `${late.length} of ${managed.length} could not be had or renewed: ${late.join(", ")}. ${first.name} ${has}. ${first.failure?.reason ?? ""}`,
      fix: `hibernaut certs check ${first.name} --app ${first.app}`,
    };
  } catch (error) {
    yield { name, status: "warn", found: `the certificates cannot be read: ${messageOf(error)}` };
  }
}

/** Says nothing where no app has a limit. */
async function* checkQuotas(settings: Settings): AsyncIterable<Diagnosis> {
  const name = "quotas";
  try {
    const { quotaUse } = await import("./doctor-quotas.ts");
    const { limited, full } = quotaUse(settings);
    const [first] = full;
    if (first !== undefined) {
      const found = full.map(({ text }) => text).join(", ");
      yield { name, status: "warn", found, fix: `hibernaut apps show ${first.app}` };
    } else if (limited > 0) yield { name, status: "ok", found: `${limited} with limits, all with room` };
  } catch (error) {
    yield { name, status: "warn", found: `what apps have cannot be read: ${messageOf(error)}` };
  }
}

/** Whether strangers can write to the etcd of this host's cluster. Nothing on a host alone. */
async function* checkEtcd(dataDir: string): AsyncIterable<Diagnosis> {
  const name = "cluster";
  const { isInCluster, readHome } = await import("@hibernaut/cluster/home");
  try {
    if (!isInCluster(dataDir)) return;
    const { guardOf } = await import("@hibernaut/cluster/etcd/guard");
    const { guarded, found } = guardOf((await readHome(dataDir)).directory);
    yield guarded ? { name, status: "ok", found } : { name, status: "warn", found: `${found}; see docs/cluster.md` };
  } catch (error) {
    yield { name, status: "fail", found: messageOf(error) };
  }
}

/** When the stored certificate of a name expires, in milliseconds since 1970. Undefined if there is none. */
async function expiry(dataDir: string, name: string): Promise<number | undefined> {
  const [{ CertificateFiles }, { certificatesFolder }] = await Promise.all([
    import("@hibernaut/certs/files"),
    import("@hibernaut/certs"),
  ]);
  const stored = await new CertificateFiles(certificatesFolder(dataDir)).readAll(() => {}).catch(() => undefined);
  return stored?.get(name)?.notAfter;
}

/** Whether the next start would cost sleeping machines their memory. */
async function checkSnapshots(
  sleepers: FoundSleepers,
  settings: Settings,
  installed: { bundle: GuestBundle } & Pick<AcceleratorChoice, "accelerator" | "cpu">,
): Promise<Diagnosis> {
  const name = "snapshots";
  if (typeof sleepers === "string") return { name, status: "warn", found: `the machines cannot be read: ${sleepers}` };
  try {
    const [{ unfitSleepers }, { unfitText }] = await Promise.all([
      import("./doctor-sleepers.ts"),
      import("@hibernaut/machines/unfit-snapshots"),
    ]);
    const asleep = sleepers.machines.filter(({ snapshot }) => snapshot !== null).length;
    const unfit = await unfitSleepers(sleepers, settings, installed);
    if (unfit.length === 0) return { name, status: "ok", found: `all sleeping machines can resume (${asleep})` };
    return {
      name,
      status: "warn",
      found: `the next start is refused, because it would cost sleeping machines their memory (${unfit.length} of ${asleep}): ${unfitText(unfit)}`,
      fix: "undo what has changed, or give the memory up: hibernaut serve --drop-snapshots",
    };
  } catch (error) {
    return { name, status: "warn", found: messageOf(error) };
  }
}

/** Returns the bundle that the setup built, or what is wrong with it. */
async function builtBundle(folder: string): Promise<GuestBundle | string> {
  try {
    const bundle = await readBundle(folder);
    await Promise.all([bundle.kernel, bundle.initrd].map((file) => access(file, constants.R_OK)));
    return bundle.version ? bundle : `${folder}/bundle.json has no version`;
  } catch (error) {
    return messageOf(error);
  }
}

/** Returns the directory itself, or the nearest of its parents that exists. */
async function existing(folder: string): Promise<string> {
  for (let at = folder; ; at = dirname(at)) {
    const there = await access(at).then(
      () => true,
      (error: NodeJS.ErrnoException) => error.code !== "ENOENT",
    );
    if (there || at === dirname(at)) return at;
  }
}
