/** The machine of a build: born from the parent, or started from an image, and destroyed when the build is over. */
import type { Readable } from "node:stream";
import type { BuildLogLevel } from "@hibernaut/domain/build";
import type { MachineConfig } from "@hibernaut/domain/config";
import type { ProgramDefaults } from "@hibernaut/domain/sandbox";
import type { CommandExit, GuestCommand } from "@hibernaut/guest";
import { abortable } from "@hibernaut/lib/async";
import { messageOf } from "@hibernaut/lib/text";
import type { SandboxNeeds } from "../contract.ts";
import { isMissing, Refusal } from "../failure.ts";
import { SandboxGuest, saidBy } from "../inside/guest.ts";
import { MOST_SAID_BYTES } from "../inside/limits.ts";
import { GONE_TIMEOUT_MS, RUNNING_TIMEOUT_MS } from "./limits.ts";
import type { BuildLog } from "./log.ts";

/** What a build begins with: a template, or what a machine is that is started from an image. */
export type Parent = { /** As its client names it. */ title: string } & (
  | { template: string; programs: ProgramDefaults /** As its client wants it. */; asLarge: boolean }
  | { config: MachineConfig }
);

/** Where and as whom a program runs. */
export interface RunOptions extends ProgramDefaults {
  step: string;
  log: BuildLog;
  signal: AbortSignal;
}

/** What sandboxes expect of an image: bash, and a user. */
const PREPARE = `
[ -x /bin/bash ] || { echo "The image has no /bin/bash, with which programs in sandboxes are started."; exit 1; }
id user >/dev/null 2>&1 && exit 0
useradd -m -s /bin/bash user >/dev/null 2>&1 || adduser -D -s /bin/bash user >/dev/null 2>&1 ||
  echo "The image gets no user 'user': programs run as the image's own."
`;

export class BuildMachine {
  readonly app: string;
  readonly id: string;
  readonly guest: SandboxGuest;
  readonly #needs: SandboxNeeds;

  private constructor(needs: SandboxNeeds, app: string, id: string, user: string | undefined) {
    this.#needs = needs;
    this.app = app;
    this.id = id;
    this.guest = new SandboxGuest((spec) => needs.resources.commands.run(app, id, spec), user);
  }

  /** Resolves once it runs. Rejects as the creation of machines does; then there is none. */
  static async open(needs: SandboxNeeds, app: string, parent: Parent, signal: AbortSignal): Promise<BuildMachine> {
    const { machines, templates } = needs.resources;
    // No sandbox: no client sees it, no request reaches it, and the next platform destroys it if this one does not.
    const hidden = { cordoned: true, temporary: true } as const;
    const { record } =
      "template" in parent
        ? await templates.bear(app, parent.template, hidden, signal)
        : await machines.create(app, { ...hidden, config: parent.config }, signal);
    const user = "template" in parent ? parent.programs.user : undefined;
    const machine = new BuildMachine(needs, app, record.id, user);
    try {
      const wait = { timeoutMs: RUNNING_TIMEOUT_MS, signal };
      const { state } = await machines.wait(app, record.id, ["running", "failed", "stopped"], wait);
      if (state === "running") return machine;
      const why = machines.get(app, record.id).record.stateReason ?? "no reason is known";
      throw new Refusal(503, `The machine of the build did not come up: it is ${state}, because ${why}.`);
    } catch (error) {
      await machine.destroy();
      throw error;
    }
  }

  /** Prepares a machine from an image as the base image is, and returns how programs begin. */
  async begin(
    parent: Parent,
    { step, log, signal }: Omit<RunOptions, keyof ProgramDefaults>,
  ): Promise<ProgramDefaults> {
    if ("template" in parent) return parent.programs;
    const command = this.guest.start({ args: ["/bin/sh", "-c", PREPARE], user: "root" });
    const exit = await this.#heard(command, step, log, signal);
    if (exit.code !== 0) throw new Refusal(400, exit.failure ?? "The image cannot be used: see the log of the build.");
    return {};
  }

  /** Runs a shell command, with all that it prints in the log. Rejects with a {@link Refusal} when it cannot be run. */
  async run(command: string, { step, log, signal, ...as }: RunOptions): Promise<CommandExit> {
    signal.throwIfAborted();
    const program = this.guest.start({ args: ["/bin/bash", "-l", "-c", command], ...(await this.as(as)) });
    const exit = await this.#heard(program, step, log, signal);
    if (exit.failure !== undefined) throw new Refusal(400, `${exit.failure}.`);
    return exit;
  }

  /** Takes what a program prints into the log, and resolves when it has ended. It ends with the signal. */
  async #heard(program: GuestCommand, step: string, log: BuildLog, signal: AbortSignal): Promise<CommandExit> {
    const pass = (output: Readable, level: BuildLogLevel) => {
      const lines = log.lines(step, level);
      output.on("data", (bytes: Buffer) => lines.write(bytes)).on("close", () => lines.end());
    };
    pass(program.stdout, "info");
    pass(program.stderr, "warn");
    const end = () => program.kill("the build is over");
    signal.addEventListener("abort", end, { once: true });
    try {
      return await abortable(program.exit, signal);
    } finally {
      signal.removeEventListener("abort", end);
    }
  }

  /** What variables have in a shell of root. Those that are not there are empty. */
  async environment(names: readonly string[], signal: AbortSignal): Promise<string[]> {
    if (names.length === 0) return [];
    const script = 'for name in "$@"; do printf "%s\\0" "${!name}"; done';
    const args = ["/bin/bash", "-l", "-c", script, "bash", ...names];
    const program = this.guest.start({ args, user: "root" });
    program.stderr.resume();
    const said = await abortable(saidBy(program, MOST_SAID_BYTES), signal);
    const values = said.toString("utf8").split("\0");
    return names.map((_, index) => values[index] ?? "");
  }

  /** As whom, where and with what programs run. */
  async as({ user, workdir, env = {} }: ProgramDefaults) {
    const as = await this.guest.user(user);
    return { env, ...(as !== undefined && { user: as }), ...(workdir !== undefined && { workdir }) };
  }

  /** Never rejects: what cannot be destroyed now, the next platform destroys. */
  async destroy(): Promise<void> {
    const { machines } = this.#needs.resources;
    try {
      machines.destroy(this.app, this.id, { force: true });
      await machines.wait(this.app, this.id, ["destroyed"], { timeoutMs: GONE_TIMEOUT_MS });
    } catch (error) {
      if (isMissing(error)) return;
      const reason = messageOf(error);
      this.#needs.log.warn({ machine: this.id, reason }, "the machine of a build is destroyed at the next start");
    }
  }
}

/** How a command ended, in words. Undefined when it succeeded. */
export function failed({ code, signal }: CommandExit): string | undefined {
  if (signal !== 0) return `it was ended by signal ${signal}`;
  return code === 0 ? undefined : `exit status ${code}`;
}
