/**
 * A machine whose power can fail: emulated in full by QEMU, with the platform and its disk inside. `cut` kills that QEMU,
 * so everything that the kernel inside had not yet written to its disk is gone, as after a power cut.
 */
import { type ChildProcess, execFile, type StdioOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { HibernautClient } from "@hibernaut/client";
import { Qmp } from "@hibernaut/hypervisor/qemu/qmp";
import type { OuterFiles } from "./outer-disk.ts";
import { API_PORT, ENDED, EXITED, PROGRAM, PROXY_PORT } from "./outer-init.ts";

/** Sparse. The memory, layers and volumes of a few small machines take a part of it. */
const DISK_BYTES = 6 * 1024 ** 3;
/** The platform, and a few guests with 128 MB each. */
const MEMORY_MB = 2048;
/**
 * The kernel boots in 10 s, the platform starts in another 20 s, and a proof of KVM takes a minute. On a loaded host, all
 * of it takes several times that.
 */
const BOOT_DEADLINE_MS = 600_000;
const QMP_DEADLINE_MS = 10_000;
const CONSOLE_LINES = 40;
/** The kernel ends the outer machine with this process, however that ends. */
const UNTIL_OUR_END = ["--pdeathsig", "KILL", "--"];

/** Makes the disk whose power will fail: an empty file system. */
export async function makeDisk(path: string): Promise<void> {
  await writeFile(path, "");
  await truncate(path, DISK_BYTES);
  const env = { ...process.env, PATH: `${process.env["PATH"]}:/usr/sbin:/sbin` };
  await promisify(execFile)("mkfs.ext4", ["-q", "-F", path], { env });
}

/** One boot of the outer machine, which ends with {@link cut}. */
export class Outer {
  readonly #child: ChildProcess;
  readonly #console: string;
  /** The platform's API, from outside. */
  readonly client: HibernautClient;
  readonly proxyUrl: string;

  private constructor(child: ChildProcess, console: string, client: HibernautClient, proxyUrl: string) {
    this.#child = child;
    this.#console = console;
    this.client = client;
    this.proxyUrl = proxyUrl;
  }

  /** Boots it from a disk, and resolves when the platform inside has recovered and answers. */
  static async boot(files: OuterFiles, disk: string, folder: string): Promise<Outer> {
    const { child, console, qmpPath } = start(files, disk, folder);
    try {
      const limit = AbortSignal.timeout(BOOT_DEADLINE_MS);
      const token = await tokenFrom(child, limit);
      const ports = await forwardedPorts(qmpPath);
      const url = (port: number) => `http://127.0.0.1:${ports.get(port)}`;
      return new Outer(child, console, new HibernautClient({ apiUrl: url(API_PORT), token }), url(PROXY_PORT));
    } catch (error) {
      await end(child);
      throw new Error(`The platform did not start after the power came back.\n${await tail(console)}`, {
        cause: error,
      });
    }
  }

  /**
   * Boots it, and has it run one of the programs of `files` instead of the platform. Calls `onLine` for each line that the
   * program prints, and resolves with its exit code. Rejects when `signal` is aborted first.
   */
  static async run(
    files: OuterFiles,
    disk: string,
    folder: string,
    { program, onLine, signal }: { program: string; onLine(line: string): void; signal: AbortSignal },
  ): Promise<number> {
    const { child, console } = start(files, disk, folder, `${PROGRAM}${program}`);
    try {
      for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream, signal })) {
        if (line.startsWith(EXITED)) return Number(line.slice(EXITED.length));
        onLine(line);
      }
      throw new Error(`The outer machine ended, or its time was up.\n${await tail(console)}`);
    } finally {
      await end(child);
    }
  }

  /** The power fails: nothing inside gets another instruction. */
  async cut(): Promise<void> {
    await end(this.#child);
  }

  /** The last lines of kernel and platform, to show with a failure. */
  lastLines(): Promise<string> {
    return tail(this.#console);
  }
}

/** Starts the process. `parameter` is for the kernel's command line. */
function start(files: OuterFiles, disk: string, folder: string, parameter = "") {
  const [console, qmpPath] = [join(folder, "console.log"), join(folder, "qmp")];
  const args = outerArguments(files, { disk, console, qmpPath, parameter });
  const stdio: StdioOptions = ["ignore", "pipe", "inherit"];
  return { child: spawn("setpriv", [...UNTIL_OUR_END, "qemu-system-x86_64", ...args], { stdio }), console, qmpPath };
}

/**
 * The emulated processor: one, because nested guests on two can livelock (QEMU 7.2), and without features that only cost
 * time or are emulated with faults.
 */
const PROCESSOR = ["-accel", "tcg", "-cpu", "max,-pku,-la57,-vgif", "-smp", "1"];

/**
 * The clock ticks all the time: an interrupt that arrives while a guest of the emulated processor runs can be forgotten
 * until the next one (QEMU 7.2). If that was the only timer of an idle kernel, there would be no next one.
 */
const KERNEL_OPTIONS =
  "console=ttyS0 quiet panic=-1 random.trust_cpu=on mitigations=off no_timer_check cryptomgr.notests nohz=off highres=off";

function outerArguments(
  { kernel, initrd, root }: OuterFiles,
  { disk, console, qmpPath, parameter }: Record<"disk" | "console" | "qmpPath" | "parameter", string>,
): string[] {
  const forwards = [API_PORT, PROXY_PORT].map((port) => `hostfwd=tcp:127.0.0.1:0-:${port}`).join(",");
  return [
    ...["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-machine", "q35"],
    ...[...PROCESSOR, "-m", `${MEMORY_MB}M`],
    ...["-kernel", kernel, "-initrd", initrd],
    ...["-append", `${KERNEL_OPTIONS} ${parameter}`],
    ...["-chardev", `file,id=console,path=${console},append=on`, "-serial", "chardev:console"],
    ...["-chardev", "stdio,id=words,signal=off", "-serial", "chardev:words"],
    ...["-drive", `if=none,id=root,file=${root},format=raw,readonly=on`, "-device", "virtio-blk-pci,drive=root"],
    // A flush inside is a flush here, and a write that was not flushed inside never left the kernel's memory there.
    ...["-drive", `if=none,id=disk,file=${disk},format=raw,cache=writeback`, "-device", "virtio-blk-pci,drive=disk"],
    ...["-netdev", `user,id=net,${forwards}`, "-device", "virtio-net-pci,netdev=net,romfile="],
    ...["-qmp", `unix:${qmpPath},server=on,wait=off`],
  ];
}

/** Reads what comes before the line that says that the platform is up: its configuration file, with the token. */
async function tokenFrom(child: ChildProcess, signal: AbortSignal): Promise<string> {
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream, signal });
  let token = "";
  for await (const line of lines) {
    token = /"api_token": "([^"]+)"/.exec(line)?.[1] ?? token;
    if (line.includes(ENDED)) break;
    if (line.includes('"api_url":') && line.includes("data_dir")) return token;
  }
  throw new Error(signal.aborted ? `it took longer than ${BOOT_DEADLINE_MS / 1000} s` : "it ended");
}

/** Asks QEMU which ports of this host it has taken for those inside. */
async function forwardedPorts(qmpPath: string): Promise<Map<number, string>> {
  const qmp = await Qmp.connect(qmpPath, AbortSignal.timeout(QMP_DEADLINE_MS));
  try {
    const text = await qmp.execute<string>("human-monitor-command", { "command-line": "info usernet" });
    const rows = text.matchAll(/TCP\[HOST_FORWARD\]\s+\d+\s+127\.0\.0\.1\s+(\d+)\s+\S+\s+(\d+)/g);
    return new Map([...rows].map(([, outside = "", inside]) => [Number(inside), outside]));
  } finally {
    qmp.close();
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
}

async function tail(path: string): Promise<string> {
  const text = await readFile(path, "utf8").catch(() => "");
  return text.split("\n").slice(-CONSOLE_LINES).join("\n");
}
