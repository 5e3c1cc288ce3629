/** Whether machines can run: Node, QEMU, what they boot, KVM, and the jail. */
import { access, constants, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { GuestBundle } from "@hibernaut/domain/guest-bundle";
import { readBundle } from "@hibernaut/guest/bundles";
import type { AcceleratorChoice } from "@hibernaut/hypervisor/qemu/accelerator";
import { canCloneIn } from "@hibernaut/lib/disk-files";
import { messageOf } from "@hibernaut/lib/text";
import { wayOfMemory } from "@hibernaut/machines/births/memory-way";
import type { Settings } from "@hibernaut/settings";
import { existing } from "./data-directory.ts";
import { type Diagnosis, examine } from "./diagnosis.ts";

/** What starting and ending QEMU may add to the proof of KVM. */
const PROOF_MARGIN_MS = 60_000;
const NODE_MAJOR = 24;

/** Checks that this version of Node runs TypeScript and has what the platform uses. */
export function checkNode(version: string): Diagnosis {
  const ok = Number(version.split(".")[0]) >= NODE_MAJOR;
  return ok
    ? { name: "node", status: "ok", found: version }
    : { name: "node", status: "fail", found: `${version}, older than ${NODE_MAJOR}`, fix: "npm run setup" };
}

export function checkQemu(program: string): Promise<Diagnosis> {
  return examine("qemu", { status: "fail", fix: "apt-get install -y qemu-system-x86" }, async () => {
    const { qemuVersion } = await import("@hibernaut/hypervisor/qemu/accelerator");
    return { status: "ok", found: await qemuVersion(program) };
  });
}

/** Returns the bundle that the setup built, or what is wrong with it. */
export async function builtBundle(folder: string): Promise<GuestBundle | string> {
  try {
    const bundle = await readBundle(folder);
    await Promise.all([bundle.kernel, bundle.initrd].map((file) => access(file, constants.R_OK)));
    return bundle.version ? bundle : `${folder}/bundle.json has no version`;
  } catch (error) {
    return messageOf(error);
  }
}

export async function checkKvmDevice(): Promise<Diagnosis> {
  const name = "/dev/kvm";
  try {
    await access("/dev/kvm", constants.R_OK | constants.W_OK);
    return { name, status: "ok", found: "can be opened" };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT")
      return { name, status: "warn", found: "this user may not open it", fix: 'usermod -aG kvm "$(id -un)"' };
    const found = "missing; machines run in software emulation, about ten times slower";
    return { name, status: "warn", found, fix: "modprobe kvm_intel || modprobe kvm_amd" };
  }
}

export async function checkAccelerator(
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

export function checkJail(settings: Settings, accelerator: "kvm" | "tcg"): Promise<Diagnosis> {
  return examine("jail", { status: "fail", fix: "export HIBERNAUT_JAIL=auto" }, async () => {
    const { findJail } = await import("@hibernaut/hypervisor/qemu/jail/find");
    const { found, lacks } = await findJail({ ...settings, accelerator, look: true });
    if (lacks.length === 0) return { status: "ok", found };
    if (settings.jail === "off") return { status: "warn", found };
    return { status: "warn", found: `${found}; it lacks ${lacks.join("; ")}. See docs/security.md` };
  });
}

const MEMORY_WAYS = {
  share: "a fork begins with its origin's memory, and takes space for its own when it is suspended for the first time",
  clone: "a fork has a memory of its own, which shares the blocks of its origin's until one of them changes",
  copy: "a fork takes the space of a whole memory",
};

/** How machines get their memory from a template, or as a fork. Nothing is wrong with any way. */
export function checkMemories(settings: Settings, accelerator: "kvm" | "tcg"): Promise<Diagnosis> {
  return examine("memory of forks", { status: "warn", fix: "npm run setup" }, async () => {
    const { findJail } = await import("@hibernaut/hypervisor/qemu/jail/find");
    const { jail } = await findJail({ ...settings, accelerator, look: true });
    const flaw = jail === undefined ? "QEMU runs without a jail" : await jail.flawInBorrowing();
    const clones = await canCloneIn(await existing(settings.dataDir));
    const way = MEMORY_WAYS[wayOfMemory({ borrows: flaw === undefined, clones })];
    return { status: "ok", found: flaw === undefined ? way : `${way}, because ${flaw}` };
  });
}
