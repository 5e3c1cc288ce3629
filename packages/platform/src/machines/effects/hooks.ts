/** What an image may run around a suspend, and what its app is asked and told. */
import { abortable } from "../../lib/async.ts";
import { messageOf } from "../../lib/text.ts";
import { type EffectContext, within } from "./context.ts";

const FOLDERS = {
  "pre-suspend": "/etc/hibernaut/hooks/pre-suspend.d",
  "post-resume": "/etc/hibernaut/hooks/post-resume.d",
} as const;

/** The agent kills what is late by the guest's clock; the guest itself may be late too. */
const GRACE_MS = 2000;

/** Runs the image's hooks of a kind. They cannot stop what is under way: how they failed is told, not thrown. */
export async function runHooks(
  context: EffectContext,
  kind: keyof typeof FOLDERS,
  timeoutMs: number,
): Promise<string | undefined> {
  const { live, signal } = context;
  if (live === undefined || !live.agent.hasStreams) return undefined;
  const command = live.agent.streams.run({ args: [], hooks: FOLDERS[kind], timeoutMs });
  for (const output of [command.stdout, command.stderr])
    output.on("data", (data: Buffer) => context.machineLog.output("hooks", data));
  try {
    const exit = await abortable(command.exit, within(signal, timeoutMs + GRACE_MS, `the ${kind} hooks`));
    if (exit.timedOut) return `the ${kind} hooks were killed after ${timeoutMs} ms`;
    if (exit.failure !== undefined) return `the ${kind} hooks could not be run: ${exit.failure}`;
    return exit.code === 0 ? undefined : `${exit.code} ${kind} hook(s) failed`;
  } catch (error) {
    command.kill();
    signal.throwIfAborted();
    return messageOf(error);
  }
}

/** Gives the app and its hooks the time that the configuration grants. Says what went wrong, if anything did. */
export async function getReady(context: EffectContext, timeoutMs: number): Promise<string | undefined> {
  const [answer, hooks] = await Promise.all([
    context.inside.askToGetReady(timeoutMs, context.signal),
    runHooks(context, "pre-suspend", timeoutMs),
  ]);
  const late = answer === "late" ? `the app was not ready after ${timeoutMs} ms` : undefined;
  return [late, hooks].filter((text) => text !== undefined).join("; ") || undefined;
}
