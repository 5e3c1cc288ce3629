/** Changes machines one at a time. One that runs must work before the next one is changed. */
import {
  ApiError,
  type BrowserClient,
  type Machine,
  type MachineConfig,
  type MachineState,
  type WaitState,
} from "@hibernaut/client/browser";
import { isUp } from "./rollout-plan.ts";

/** How long a machine may take to come up and pass its checks, in milliseconds: as long as `hibernaut deploy` allows. */
const WORKS_WITHIN_MS = 120_000;
/** Longer waits take several requests, in seconds. */
const REQUEST_S = 30;
/** States in which a machine has shown whether it works. */
const VERDICTS: readonly WaitState[] = ["healthy", "unhealthy", "stopped", "failed", "restarting", "suspended"];

/** Where a machine is that the platform let sleep. */
const ASLEEP: ReadonlySet<MachineState> = new Set(["suspending", "suspended", "stopping", "stopped"]);

/** How far one machine is. */
export interface Step {
  id: string;
  name: string;
  state: "waiting" | "changing" | "done" | "failed";
  /** What happened, for people. */
  note: string;
}

interface RolloutOptions {
  /** What is changed. */
  kind: "deploy" | "settings";
  change(config: MachineConfig): MachineConfig;
  /** Start machines that sleep with the change, check them, and let them sleep again. */
  prewarm: boolean;
  onStep(step: Step): void;
}

/** Changes all targets. Rejects with the first failure; the machines after it are left as they are. */
export async function rollOut(
  api: BrowserClient,
  targets: readonly Machine[],
  { kind, change, prewarm, onStep }: RolloutOptions,
): Promise<void> {
  for (const [index, { app_name: app, machine_id: id, name }] of targets.entries()) {
    const tell = (state: Step["state"], note: string) => onStep({ id, name, state, note });
    tell("changing", "is being updated");
    try {
      const note = await changeOne(api, { app, id }, { change, prewarm });
      tell("done", note);
    } catch (error) {
      tell("failed", error instanceof Error ? error.message : String(error));
      const left = targets.length - index - 1;
      throw withContext(error, kind, name, left);
    }
  }
}

async function changeOne(
  api: BrowserClient,
  { app, id }: { app: string; id: string },
  { change, prewarm }: Pick<RolloutOptions, "change" | "prewarm">,
): Promise<string> {
  const before = await updateWhenFree(api, { app, id }, { change, prewarm });
  if (isUp(before)) return untilWell(api, app, id);
  if (!prewarm) {
    const state = await waitFor(api, app, id, ["settled"]);
    return `is ${state}, and starts with the change at the next request: nobody has tried it yet`;
  }
  await waitFor(api, app, id, ["prewarmed"]);
  const after = await api.getMachine(app, id);
  if (after.prewarm?.status === "failed") throw new Error(after.prewarm.reason ?? "It did not work.");
  if (after.prewarm?.status !== "done") return untilWell(api, app, id);
  return `ran with the change, and is ${await waitFor(api, app, id, ["settled"])} again`;
}

/** A machine that is being suspended or updated cannot be updated until that is done. Returns it as it was before. */
async function updateWhenFree(
  api: BrowserClient,
  { app, id }: { app: string; id: string },
  { change, prewarm }: Pick<RolloutOptions, "change" | "prewarm">,
): Promise<Machine> {
  for (const end = Date.now() + WORKS_WITHIN_MS; ; ) {
    const before = await api.getMachine(app, id);
    try {
      await api.updateMachine(app, id, change(before.config), { prewarm: prewarm && !isUp(before) });
      return before;
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "aborted" || Date.now() > end) throw error;
      await waitFor(api, app, id, ["settled"]);
    }
  }
}

async function untilWell(api: BrowserClient, app: string, id: string): Promise<string> {
  // One wait from the start, so that nothing is missed of a machine that works for a moment and falls asleep.
  const reached = await inRequests((wait) => api.firstReached(app, id, { ...wait, state: VERDICTS }));
  const { health, state, crash, state_reason: reason, config } = await api.getMachine(app, id);
  if (health.status === "healthy") return `is running: ${health.reason}`;
  // One that worked and has crashed since does not work.
  if (reached === "healthy" && ASLEEP.has(state) && crash === null) return `worked, and is ${state} now`;
  // A machine on a schedule is done when its app has exited without a failure.
  if (config.schedule !== undefined && state === "stopped" && crash === null) return "ran, and exited";
  throw new Error(state === "running" ? health.reason : (crash?.reason ?? reason ?? `It is ${state}.`));
}

const waitFor = (api: BrowserClient, app: string, id: string, states: readonly WaitState[]): Promise<MachineState> =>
  inRequests((wait) => api.waitForMachine(app, id, { ...wait, state: states }));

async function inRequests<Found>(ask: (wait: { timeout: number }) => Promise<Found>): Promise<Found> {
  const end = Date.now() + WORKS_WITHIN_MS;
  for (;;) {
    try {
      return await ask({ timeout: REQUEST_S });
    } catch (error) {
      const isLate = error instanceof ApiError && error.code === "deadline_exceeded";
      if (!isLate || Date.now() > end) throw error;
    }
  }
}

/** What a machine has after a change, what the others keep, and what to do when it does not work. */
const WORDS: Readonly<Record<RolloutOptions["kind"], readonly [has: string, keep: string, advice: string]>> = {
  deploy: ["the new version", "the old one", "roll back"],
  // Rolling back changes the image, and not these.
  settings: ["the new settings", "the old ones", "change them back under Settings"],
};

function withContext(error: unknown, kind: RolloutOptions["kind"], name: string, left: number): Error {
  if (error instanceof ApiError) return error;
  const what = error instanceof Error ? error.message.replace(/\.$/, "") : String(error);
  const [has, keep, advice] = WORDS[kind];
  const rest = left === 0 ? "" : ` The ${left === 1 ? "other machine keeps" : `other ${left} machines keep`} ${keep}.`;
  return new Error(`Machine ${name} has ${has}, and does not work: ${what}.${rest} Look at its log, and ${advice}.`);
}
