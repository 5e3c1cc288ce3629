/** What an image may run around a suspend, and what its app is asked and told. */
import { abortable, within } from "@hibernaut/lib/async";
import { messageOf } from "@hibernaut/lib/text";
import type { EffectPorts } from "./ports.ts";

const DIRECTORIES = {
  "pre-suspend": "/etc/hibernaut/hooks/pre-suspend.d",
  "post-resume": "/etc/hibernaut/hooks/post-resume.d",
  "post-fork": "/etc/hibernaut/hooks/post-fork.d",
} as const;

/** The agent kills hooks that are late by the guest's clock; the guest itself may be late too. */
const GRACE_MS = 2000;

interface HooksOptions {
  kind: keyof typeof DIRECTORIES;
  timeoutMs: number;
}

/** Runs the image's hooks of one kind. A failure does not stop what is in progress: it is returned, not thrown. */
export async function runHooks(
  { kind, timeoutMs }: HooksOptions,
  { guest, machineLog }: Pick<EffectPorts, "guest" | "machineLog">,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { live } = guest;
  if (live === undefined || !live.agent.hasStreams) return undefined;
  const command = live.agent.streams.run({ args: [], hooks: DIRECTORIES[kind], timeoutMs });
  for (const output of [command.stdout, command.stderr])
    output.on("data", (data: Buffer) => machineLog.output("hooks", data));
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

/** Gives the app and its hooks up to `timeoutMs` to get ready. Returns what went wrong, if anything did. */
export async function getReady(
  { timeoutMs }: { timeoutMs: number },
  ports: Pick<EffectPorts, "guest" | "machineLog" | "inside">,
  signal: AbortSignal,
): Promise<string | undefined> {
  const [answer, hooks] = await Promise.all([
    ports.inside.askToGetReady(timeoutMs, signal),
    runHooks({ kind: "pre-suspend", timeoutMs }, ports, signal),
  ]);
  const late = answer === "late" ? `the app was not ready after ${timeoutMs} ms` : undefined;
  return [late, hooks].filter((text) => text !== undefined).join("; ") || undefined;
}
