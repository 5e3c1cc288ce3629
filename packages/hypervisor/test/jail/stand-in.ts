/** A program in the place of QEMU, in the jail of a machine: it does what a guest could do that has broken out of QEMU. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chown, mkdir, mkdtemp, rm, truncate, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import type { NetworkAttachment } from "@hibernaut/domain/guest-network";
import { JAIL_LAUNCHER } from "@hibernaut/settings/places";
import { NOBODY } from "../../../platform/test/helpers/nobody.ts";
import type { VmmSpec } from "../../src/contract.ts";
import type { Cgroups } from "../../src/qemu/jail/cgroups.ts";
import { findProgram, hostPlaces } from "../../src/qemu/jail/host-places.ts";
import { Jail } from "../../src/qemu/jail/jail.ts";

const run = promisify(execFile);

export const FIRST_UID = 1_900_000_000;
/** The least that Debian always has: enough to make any system call. */
const LANGUAGE = "perl";
const MB = 1024 * 1024;
const LIMIT_MS = 60_000;

/** What the stand-in says of an attempt: `done`, or why it was refused. */
export type Outcome = string;

/** A data directory with two machines, on a host whose bridge has a tap for each. */
export class Prison {
  readonly dataDir: string;
  /** With a user for each machine and an empty network; otherwise what a platform without root can make. */
  readonly root: boolean;
  readonly own: VmmSpec;
  readonly other: VmmSpec;
  readonly #servers: Server[] = [];
  readonly #taps: string[] = [];
  #apiPort = 0;

  private constructor(dataDir: string, root: boolean) {
    this.dataDir = dataDir;
    this.root = root;
    this.own = this.#spec("00000000000001", 11);
    this.other = this.#spec("00000000000002", 12);
  }

  static async open({ root }: { root: boolean }): Promise<Prison> {
    const prison = new Prison(await mkdtemp(join(tmpdir(), "hibernaut-jail-")), root);
    await prison.#fill();
    return prison;
  }

  /** Names and numbers that an attempt may use, as `$p{name}`. */
  get facts(): Record<string, string> {
    return {
      data: this.dataDir,
      run: this.own.runDir,
      other_run: this.other.runDir,
      layer: this.own.layer,
      memory: this.own.memory,
      other_memory: this.other.memory,
      other_tap: this.#taps[1] ?? "",
      host_pid: String(process.pid),
      api: String(this.#apiPort),
    };
  }

  /** Runs Perl in the jail of the first machine, and returns what it prints. */
  async run(code: string, options: { cgroups?: Cgroups; borrowed?: boolean } = {}): Promise<string> {
    const child = await this.start(code, options);
    const [said, complaint, [exit, signal]] = await Promise.all([
      text(child.stdout as NodeJS.ReadableStream),
      text(child.stderr as NodeJS.ReadableStream),
      once(child, "exit") as Promise<[number | null, string | null]>,
    ]);
    return said === "" ? `ended with ${signal ?? exit} ${complaint.trim()}` : said.trim();
  }

  /** The same, without waiting. The process is the launcher's. With `borrowed`, other machines began with its memory, too. */
  async start(
    code: string,
    { cgroups, borrowed = false }: { cgroups?: Cgroups; borrowed?: boolean } = {},
  ): Promise<ChildProcess> {
    const program = await findProgram(LANGUAGE);
    if (program === undefined) throw new Error(`${LANGUAGE} is not installed`);
    const jail = new Jail({
      launcher: JAIL_LAUNCHER,
      program,
      host: await hostPlaces(program),
      ...(this.root && { firstUid: FIRST_UID }),
      ...(cgroups && { cgroups }),
    });
    const { runDir } = this.own;
    for (const name of ["qmp.sock", "agent.sock"]) await rm(join(runDir, name), { force: true });
    const sockets = { qmp: join(runDir, "qmp.sock"), agent: join(runDir, "agent.sock") };
    const entry = await jail.prepare({ ...this.own, borrowed }, sockets);
    const args = [...entry.args, "-e", `my %p = @ARGV; $| = 1; ${code}`, "--", ...Object.entries(this.facts).flat()];
    const stdio: ("ignore" | "pipe")[] = ["ignore", "pipe", "pipe", "ignore", "pipe"];
    const asNobody = ["--reuid", String(NOBODY), "--regid", String(NOBODY), "--clear-groups", "--", entry.program];
    return this.root
      ? spawn(entry.program, args, { stdio, timeout: LIMIT_MS, killSignal: "SIGKILL" })
      : spawn("setpriv", [...asNobody, ...args], { stdio, timeout: LIMIT_MS, killSignal: "SIGKILL" });
  }

  async close(): Promise<void> {
    for (const server of this.#servers) server.close();
    for (const tap of this.#taps) await run("ip", ["link", "delete", "dev", tap]);
    await rm(this.dataDir, { recursive: true, force: true });
  }

  async #fill(): Promise<void> {
    await run("cp", [JAIL_LAUNCHER, join(this.dataDir, "launcher")]);
    for (const name of ["hibernaut.db", "secrets.key", "config.json"])
      await writeFile(join(this.dataDir, name), "secret", { mode: 0o600 });
    for (const spec of [this.own, this.other]) await this.#make(spec);
    if (this.root)
      for (const { network } of [this.own, this.other])
        if (network.mode === "tap") {
          await run("ip", ["tuntap", "add", "dev", network.device, "mode", "tap"]);
          this.#taps.push(network.device);
        }
    await this.#listen(join(this.other.runDir, "qmp.sock"));
    const api = await this.#listen(0);
    this.#apiPort = (api.address() as { port: number }).port;
  }

  async #listen(at: string | number): Promise<Server> {
    const server = createServer((socket) => socket.on("error", () => {}).end("hello\n"));
    this.#servers.push(server);
    if (typeof at === "string") server.listen(at);
    else server.listen(at, "127.0.0.1");
    await once(server, "listening");
    return server;
  }

  async #make(spec: VmmSpec): Promise<void> {
    await mkdir(join(spec.memory, ".."), { recursive: true, mode: 0o700 });
    await mkdir(spec.runDir, { recursive: true, mode: 0o700 });
    for (const file of [spec.image, spec.bundle.kernel, spec.bundle.initrd]) await writeFile(file, "shared");
    for (const file of [spec.memory, spec.layer]) {
      await writeFile(file, "secret", { mode: 0o600 });
      await truncate(file, MB);
    }
    await writeFile(spec.consoleLog, "");
    // Without root, the platform's user owns everything.
    if (!this.root) await run("chown", ["-R", `${NOBODY}:${NOBODY}`, this.dataDir]);
    else await chown(this.dataDir, 0, 0);
  }

  #spec(machineId: string, host: number): VmmSpec {
    const folder = join(this.dataDir, "machines", machineId);
    const shared = (name: string) => join(this.dataDir, name);
    const guest = { address: `10.255.255.${host}/24`, gateway: "10.255.255.1", dns: "10.255.255.1", hosts: [] };
    const network: NetworkAttachment = this.root
      ? {
          mode: "tap",
          mac: "02:00:00:00:00:01",
          guest,
          device: `hibjail${process.pid % 100_000}${host % 10}`.slice(0, 15),
        }
      : { mode: "user", mac: "02:00:00:00:00:01", guest, address: `127.200.0.${host}`, ports: [] };
    return {
      machineId,
      cpus: 1,
      memoryMb: 128,
      bundle: { kernel: shared("kernel"), initrd: shared("initrd"), version: "" } as VmmSpec["bundle"],
      image: shared("image"),
      layer: join(folder, "layer.ext4"),
      volumes: [],
      memory: join(folder, "memory"),
      runDir: join(this.dataDir, "run", machineId),
      consoleLog: join(folder, "console.log"),
      network,
    };
  }
}
