/** Finds out which jail this host allows, by making one: rights, kernels and containers differ too much to guess. */
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import { failureReason, run } from "@hibernaut/lib/exec";
import type { Settings } from "@hibernaut/settings";
import { JAIL_LAUNCHER } from "@hibernaut/settings/places";
import { shareAmongThreads } from "../come-last.ts";
import { launcherArguments } from "./arguments.ts";
import { Cgroups } from "./cgroups.ts";
import { findProgram, hostPlaces } from "./host-places.ts";
import { Jail, KVM } from "./jail.ts";
import type { JailSettings } from "./jail-settings.ts";
import { give } from "./owning.ts";

/** A trial takes a hundredth of a second. */
const TRIAL_TIMEOUT_MS = 10_000;

/** Which jail machines get. */
interface FoundJail {
  /** Undefined when they get none. */
  jail?: Jail;
  /** What they get, for people. */
  found: string;
  /** What they lack, for people; none when the jail is whole. */
  lacks: string[];
}

type JailOptions = Pick<Settings, "jail" | "jailFirstUid" | "qemu" | "dataDir"> & {
  accelerator: "kvm" | "tcg";
  /** Only look: make no directory that stays. */
  look?: boolean;
};

/** Rejects with `failed_precondition` when the settings require a jail and this host does not allow a whole one. */
export async function findJail(options: JailOptions): Promise<FoundJail> {
  const found: FoundJail =
    options.jail === "off"
      ? { found: "none, as set by HIBERNAUT_JAIL", lacks: ["QEMU runs with the rights of the platform"] }
      : await tryJail(options);
  // Before the first of them starts.
  if (options.look !== true && found.jail?.hasGroups !== true) await shareAmongThreads();
  if (options.jail === "off") return found;
  if (options.jail === "auto" || found.lacks.length === 0) return found;
  throw new HibernautError(
    "failed_precondition",
    `HIBERNAUT_JAIL is require, but machines would lack a part of it: ${found.lacks.join("; ")}. See docs/security.md, or set HIBERNAUT_JAIL to auto.`,
  );
}

async function tryJail(options: JailOptions): Promise<FoundJail> {
  const root = process.getuid?.() === 0;
  const program = await findProgram(options.qemu);
  const none = (why: string): FoundJail => ({
    found: `none: ${why}`,
    lacks: [`QEMU runs with the rights of the platform, because ${why}`],
  });
  if (program === undefined) return none(`${options.qemu} is not installed`);
  const settings: JailSettings = {
    launcher: JAIL_LAUNCHER,
    program,
    host: await hostPlaces(program),
    ...(root && { firstUid: options.jailFirstUid }),
    ...(options.accelerator === "kvm" && { kvmGroup: (await stat(KVM)).gid }),
  };
  const failure = await trial(settings);
  if (failure !== undefined) return none(failure);
  const lacks: string[] = [];
  if (!root) lacks.push("a user for each machine, which needs root: QEMU has the platform's");
  const cgroups = !root
    ? "which need root"
    : options.look === true
      ? await Cgroups.missing()
      : await Cgroups.open(options.dataDir);
  if (typeof cgroups === "string") lacks.push(`limits on memory and CPU by control groups: ${cgroups}`);
  const jail = new Jail({ ...settings, ...(cgroups instanceof Cgroups && { cgroups }) });
  const found = root ? "a user and namespaces for each machine" : "namespaces for each machine";
  return { jail, found, lacks };
}

/** Runs QEMU in a jail to the point where it says its version. Returns why that does not work, if so. */
async function trial({ launcher, program, host, firstUid, kvmGroup }: JailSettings): Promise<string | undefined> {
  const folder = await mkdtemp(join(tmpdir(), "hibernaut-jail-"));
  try {
    if (firstUid !== undefined) await give([folder], firstUid);
    const plan = {
      program,
      root: folder,
      ...(firstUid !== undefined && { uid: firstUid }),
      groups: firstUid !== undefined && kvmGroup !== undefined ? [kvmGroup] : [],
      ownNetwork: firstUid !== undefined,
      places: {
        ...host,
        read: [...host.read, folder],
        devices: kvmGroup === undefined ? host.devices : [...host.devices, KVM],
      },
      listen: { qmp: join(folder, "q"), agent: join(folder, "a") },
      nice: 0,
      limits: {},
    };
    // Without a status descriptor, the launcher says on its standard error what is wrong.
    const args = launcherArguments(plan).slice(2);
    const { stdout } = await run(launcher, [...args, "--version"], { timeoutMs: TRIAL_TIMEOUT_MS });
    return stdout.includes("version") ? undefined : "QEMU did not say its version";
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === "ENOENT";
    return missing ? `${launcher} is missing: run \`npm run setup\`` : failureReason(error).replace(/^error /, "");
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
