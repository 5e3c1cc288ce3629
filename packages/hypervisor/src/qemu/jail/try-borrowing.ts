/** Finds out whether QEMU in a jail can begin with a memory that it may only read, by starting one. */
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { abortable, never, within } from "@hibernaut/lib/async";
import { createSparse } from "@hibernaut/lib/disk-files";
import { killGroup } from "@hibernaut/lib/exec";
import { messageOf } from "@hibernaut/lib/text";
import { READ_ONLY_LIBRARY } from "@hibernaut/settings/places";
import { maySeeMemory } from "../borrowed-memory.ts";
import { launcherArguments } from "./arguments.ts";
import type { JailSettings } from "./jail-settings.ts";
import { give, share } from "./owning.ts";

/** A QEMU without a machine starts within a tenth of a second, and much later on a loaded host. */
const TIMEOUT_MS = 30_000;
const MEMORY_MB = 1;
const COMMANDS = ["qmp_capabilities", "quit"].map((execute) => JSON.stringify({ execute })).join("\n");

/** What was found out. */
interface Verdict {
  /** Why it cannot, for people. Undefined when it can, and this process can see afterwards what the guest has written. */
  flaw: string | undefined;
  /** Nothing was found out: the host was too busy, or something of it is missing at the moment. */
  unsure?: true;
}

/** Finds it out. Takes no longer than `timeoutMs`, whatever QEMU does. */
export async function flawInBorrowing(
  settings: JailSettings,
  { timeoutMs = TIMEOUT_MS }: { timeoutMs?: number } = {},
): Promise<Verdict> {
  if (settings.firstUid === undefined) return { flaw: "machines have no users of their own, which needs root" };
  if (!(await maySeeMemory()))
    return { flaw: "the platform may not see the memory of other users' processes (CAP_SYS_PTRACE)" };
  const folder = await mkdtemp(join(tmpdir(), "hibernaut-jail-"));
  try {
    const memory = join(folder, "memory");
    await createSparse(memory, MEMORY_MB * 1024 * 1024);
    await give([folder], settings.firstUid);
    await share([memory]);
    const limit = within(never(), timeoutMs, "trying it");
    return { flaw: await begin(settings, { folder, memory, uid: settings.firstUid }, limit) };
  } catch (error) {
    return { flaw: messageOf(error), unsure: true };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function begin(
  { launcher, program, host }: JailSettings,
  { folder, memory, uid }: { folder: string; memory: string; uid: number },
  limit: AbortSignal,
): Promise<string | undefined> {
  const places = { ...host, read: [...host.read, folder, memory] };
  const preload = READ_ONLY_LIBRARY;
  const jail = { root: folder, uid, groups: [], ownNetwork: true, endWithParent: true };
  const plan = { ...jail, program, places, preload, nice: 0, limits: {} };
  const object = `memory-backend-file,id=ram,size=${MEMORY_MB}M,mem-path=${memory},share=off`;
  const machine = ["-machine", "none", "-nodefaults", "-display", "none", "-qmp", "stdio", "-object", object];
  // Without a status descriptor, the launcher says on its standard error what is wrong.
  const qemu = spawn(launcher, [...launcherArguments(plan).slice(2), ...machine], {
    stdio: "pipe",
    detached: true,
  });
  const failed = new Promise<string>((resolve) => qemu.once("error", (error) => resolve(messageOf(error))));
  const ended = new Promise<number | null>((resolve) => qemu.once("close", resolve));
  qemu.stdin.on("error", () => {}); // it has ended, and says why
  qemu.stdin.end(COMMANDS);
  qemu.stdout.resume();
  // What holds its output open may outlive the launcher: the end of all of them is not waited for.
  const end = Promise.race([Promise.all([text(qemu.stderr), ended]), failed.then((why) => [why, null])]);
  const [complaint, code] = (await abortable(end, limit).catch((error: unknown) => {
    for (const stream of [qemu.stdin, qemu.stdout, qemu.stderr]) stream.destroy();
    killGroup(qemu.pid);
    throw error;
  })) as [string, number | null];
  return code === 0 ? undefined : complaint.trim() || "QEMU did not end by itself";
}
