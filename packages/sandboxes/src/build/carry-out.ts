/** Carries out the steps of a build in its machine. */

import { posix } from "node:path";
import type { ProgramDefaults } from "@hibernaut/domain/sandbox";
import { Refusal } from "../failure.ts";
import { Files } from "../inside/files.ts";
import type { Processes } from "../inside/processes.ts";
import { copyInto, directoryAt } from "./copy.ts";
import { environmentOf } from "./environment.ts";
import { LONGEST_WORD } from "./limits.ts";
import type { BuildLog } from "./log.ts";
import { type BuildMachine, failed } from "./machine.ts";
import { FINALIZE, type Readiness, settle } from "./ready.ts";
import { after, type Step, titleOf } from "./steps.ts";
import type { Uploader, Uploads } from "./uploads.ts";

/** How much of a command a reason tells, in characters. */
const LONGEST_TOLD = 200;

/** The step in which the parent is made ready, as clients know it. */
export const BASE = "base";

/** A failure, and the step in which it happened. */
export class StepFault extends Error {
  override name = "StepFault";
  readonly step: string;

  constructor(step: string, cause: unknown) {
    super("a step of the build failed", { cause });
    this.step = step;
  }
}

/** What steps are carried out with. */
interface CarryOut {
  machine: BuildMachine;
  app: Uploader;
  uploads: Pick<Uploads, "read">;
  processes: Processes;
  log: BuildLog;
  signal: AbortSignal;
}

/**
 * Carries out all steps, and lets the template become ready. Resolves with how programs of its sandboxes begin. Rejects with a
 * {@link StepFault}.
 */
export async function carryOut(
  steps: readonly Step[],
  readiness: Readiness,
  defaults: ProgramDefaults,
  context: CarryOut,
): Promise<ProgramDefaults> {
  // All steps begin where the usual user is at home, as whomever they run. Sandboxes keep that only if a step chooses it.
  const home = defaults.workdir ?? (await inStep(BASE, () => homeOf(defaults, context)));
  let now: ProgramDefaults = { ...defaults, ...(home !== undefined && { workdir: home }) };
  for (const [index, step] of steps.entries()) {
    const word = String(index + 1);
    context.log.say(word, "info", `[${word}/${steps.length}] ${titleOf(step)}`);
    now = await inStep(word, () => one(step, word, now, context));
  }
  await inStep(FINALIZE, () => settle(context.machine, readiness, { ...context, defaults: now }));
  if (defaults.workdir !== undefined || steps.some(({ type }) => type === "WORKDIR")) return now;
  const { workdir: _home, ...chosen } = now;
  return chosen;
}

/** Undefined where there is no such directory. */
async function homeOf({ user }: ProgramDefaults, { machine, signal }: CarryOut): Promise<string | undefined> {
  const files = new Files(machine.guest, { user: await machine.guest.user(user), signal });
  const home = await files.statIfThere(".");
  return home && absolute(home.path);
}

/** What a machine's agent calls a directory in full. */
function absolute(path: string): string {
  if (posix.isAbsolute(path) && path.length <= LONGEST_WORD) return posix.normalize(path).replace(/(?<=.)\/\.?$/, "");
  throw new Refusal(502, "The machine's agent gave an answer that makes no sense.");
}

/** Does the work of a step. */
export async function inStep<T>(step: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new StepFault(step, error);
  }
}

async function one(step: Step, word: string, now: ProgramDefaults, context: CarryOut): Promise<ProgramDefaults> {
  const { machine, uploads, app, log, signal } = context;
  signal.throwIfAborted();
  switch (step.type) {
    case "RUN": {
      const { user = now.user } = step;
      const as = { ...now, ...(user !== undefined && { user }) };
      const fault = failed(await machine.run(step.command, { ...as, step: word, log, signal }));
      if (fault === undefined) return now;
      const said = log.last.findLast((entry) => entry.step === word && entry.level === "warn")?.message;
      throw new Refusal(
        400,
        `\`${shortened(step.command)}\` failed: ${fault}${said === undefined ? "" : ` (${said})`}.`,
      );
    }
    case "COPY": {
      const archive = await uploads.read(app, step.hash);
      if (archive === undefined)
        throw new Refusal(400, `The files of \`${step.source}\` are not there. Upload them, and build again.`);
      try {
        await copyInto(machine, step, archive, now, signal);
      } finally {
        archive.destroy();
      }
      return now;
    }
    case "WORKDIR": {
      const user = await machine.guest.user(now.user);
      const files = new Files(machine.guest, { user, workdir: now.workdir, signal });
      return { ...now, workdir: absolute(await directoryAt(files, step.path)) };
    }
    case "USER":
      // Programs as a user who is not there fail, and this one says why first.
      await machine.run("true", { user: step.user, step: word, log, signal });
      return after(now, step);
    case "ENV":
      return after(now, { ...step, env: await environmentOf(step.env, now, machine, signal) });
  }
}

/** A command may be a whole program. */
function shortened(command: string): string {
  return command.length > LONGEST_TOLD ? `${command.slice(0, LONGEST_TOLD)}...` : command;
}
