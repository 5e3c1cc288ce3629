/** What `compose plan` and `compose up` do, and `launch` in a directory with a compose file. */
import { answersAt } from "../answering.ts";
import type { Result } from "../command.ts";
import { Context } from "../context.ts";
import { WAIT_TIMEOUT_S } from "../defaults.ts";
import { FOR_PREVIEWS } from "../deploy/preview-options.ts";
import { toFailure, UsageError } from "../failure.ts";
import { given } from "../option-values.ts";
import { lines, table } from "../terminal.ts";
import { findingText, loadProject } from "./load.ts";
import type { ProjectOptions } from "./options.ts";
import { planText } from "./show.ts";
import { PARALLEL, up } from "./up.ts";

/** Shows what the project becomes. Asks no platform. */
export function planProject(options: ProjectOptions): Result {
  const loaded = loadProject(options);
  // Names only: the output of a plan ends up in logs.
  const apps = loaded.plan.apps.map(({ secrets, ...app }) => ({ ...app, secrets: secrets.map(({ name }) => name) }));
  return { document: { name: loaded.plan.name, apps, findings: loaded.findings }, text: planText(loaded) };
}

interface UpOptions extends ProjectOptions {
  waitTimeout?: number;
  forceRecreate?: boolean;
  parallel?: number;
  upload?: boolean;
  ttl?: number;
  copySecrets?: boolean;
  copyVolumes?: boolean;
}

/** Brings the project up. */
export async function upProject(context: Context, options: UpOptions): Promise<Result> {
  const { ttl, copySecrets, copyVolumes } = options;
  if (options.preview === undefined && (ttl !== undefined || copySecrets || copyVolumes))
    throw new UsageError(FOR_PREVIEWS);
  const { plan, findings } = loadProject(options);
  for (const finding of findings) if (finding.severity === "warning") context.say(findingText(finding));
  const { waitTimeout = WAIT_TIMEOUT_S, forceRecreate = false, parallel = PARALLEL, upload } = options;
  const outcomes = await up(context, plan, {
    ...{ waitTimeout, force: forceRecreate, parallel },
    ...given({ upload, ttl, copySecrets, copyVolumes }),
  });
  const failures = outcomes.flatMap(({ error }) => error ?? []);
  const services = outcomes.map(({ error, ...outcome }) => ({
    ...outcome,
    ...(error !== undefined && { error: toFailure(error) }),
  }));
  const rows = services.map(({ service, app, action }) => [service, app, action]);
  return {
    document: { project: plan.preview?.of ?? plan.name, ...given({ preview: plan.preview?.name }), services },
    text: lines(table([["SERVICE", "APP", "RESULT"], ...rows]), await answers(context, services)),
    ...(failures.length > 0 && { failures }),
  };
}

/** Where the project answers for people. It is up, even if that cannot be found out now. */
async function answers({ json }: Context, services: readonly { app: string }[]): Promise<string> {
  const asked = services.map(({ app }) => answersAt(new Context({ json, app })).catch(() => undefined));
  return lines(...(await Promise.all(asked)).flatMap((line) => line ?? []));
}
