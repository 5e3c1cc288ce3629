/** One build, from its parent to the template, and who is told of it. */
import type { BuildRecord } from "@hibernaut/domain/build";
import { background } from "@hibernaut/lib/background";
import { messageOf } from "@hibernaut/lib/text";
import type { SandboxNeeds } from "../contract.ts";
import { isMissing, Refusal } from "../failure.ts";
import type { Processes } from "../inside/processes.ts";
import { builtName, type TemplateNames } from "../life/names.ts";
import { BASE, carryOut, inStep } from "./carry-out.ts";
import type { BuildLog } from "./log.ts";
import { BuildMachine, type Parent } from "./machine.ts";
import { FINALIZE, type Readiness } from "./ready.ts";
import type { Step } from "./steps.ts";
import type { Uploads } from "./uploads.ts";

/** What is built. */
export interface BuildOrder extends Readiness {
  parent: Parent;
  steps: readonly Step[];
}

/** What templates are made with. */
export interface MakeOptions {
  needs: SandboxNeeds;
  names: TemplateNames;
  processes: Processes;
  uploads: Uploads;
}

/**
 * Makes the template, and lets its names lead to it: from then on, the build is ready. Rejects with a `StepFault`, and leaves
 * nothing then. In any case, the machine of the build is destroyed, or will be at the next start.
 */
export async function makeTemplate(
  build: BuildRecord,
  { parent, steps, ...readiness }: BuildOrder,
  { needs, names, uploads, processes }: MakeOptions,
  { log, signal }: { log: BuildLog; signal: AbortSignal },
): Promise<void> {
  const { app: appName, id, name } = build;
  const app = needs.resources.apps.get(appName);
  log.say(BASE, "info", `FROM ${parent.title}`);
  for (const warning of warningsOf(parent)) log.say(BASE, "warn", warning);
  const machine = await inStep(BASE, () => BuildMachine.open(needs, appName, parent, signal));
  try {
    const begin = await inStep(BASE, () => machine.begin(parent, { step: BASE, log, signal }));
    const programs = await carryOut(steps, readiness, begin, { machine, app, uploads, processes, log, signal });
    await inStep(FINALIZE, async () => {
      log.say(FINALIZE, "info", "Keeping the state of the machine as the template");
      const chosen = { machine: machine.id, name: builtName(name, id), programs };
      const { template } = await needs.resources.templates.createOf(appName, chosen, signal);
      log.say(FINALIZE, "info", `Template ${template.id} is ready`);
      await publish(build, template.id, log, { needs, names }).catch(async (error: unknown) => {
        await unmake(build, needs);
        throw error;
      });
    });
  } finally {
    await machine.destroy();
  }
}

async function publish(
  build: BuildRecord,
  template: string,
  log: BuildLog,
  { needs, names }: Pick<MakeOptions, "needs" | "names">,
): Promise<void> {
  const assignedAt = new Date().toISOString();
  const { app, name, id } = build;
  const before = names.of(app, name);
  const tags = build.tags.map((tag) => ({ app, name, tag, build: id, template, assignedAt }));
  const ready = { ...build, status: "ready", fault: null, finishedAt: assignedAt } as const;
  if (needs.builds.finish(ready, log.entries, tags)) {
    background(names.drop(app, before), "deleting templates that a build has replaced");
    return;
  }
  throw new Refusal(404, `App ${app} was deleted meanwhile.`);
}

/** Deletes the template of a build that nobody was told of. Never rejects. */
export async function unmake({ app, name, id }: BuildRecord, { resources, log }: SandboxNeeds): Promise<void> {
  try {
    const made = resources.templates.list(app).find(({ template }) => template.name === builtName(name, id));
    if (made !== undefined) await resources.templates.delete(app, made.template.id);
  } catch (error) {
    if (!isMissing(error)) log.warn({ build: id, reason: messageOf(error) }, "a template of no build stays");
  }
}

/** What a client asked for and does not get. */
function warningsOf(parent: Parent): string[] {
  if ("config" in parent || parent.asLarge) return [];
  return ["This template gets the CPUs and the memory of its parent: `cpuCount` and `memoryMB` have no effect."];
}
