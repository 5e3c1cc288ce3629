/**
 * Deploys and changes of settings that this page carries out. They continue while other pages of the dashboard are
 * shown, and end with the window.
 */
import type { BrowserClient, Machine, MachineConfig, PullProgress, Release } from "@hibernaut/client/browser";
import { useEffect, useReducer } from "preact/hooks";
import { rollOut, type Step } from "./rollout.ts";

/** The platform takes a release for abandoned after a minute without a report, in milliseconds. */
const REPORT_EVERY_MS = 15_000;
const LONGEST_DESCRIPTION = 500;

/** What is being done to an app, or was. */
export interface Job {
  kind: "deploy" | "settings";
  phase: "image" | "machines" | "complete" | "failed";
  /** The image, or what is changed. */
  what: string;
  pull?: PullProgress;
  release?: Release;
  steps: readonly Step[];
  error?: unknown;
}

/** By app. */
const jobs = new Map<string, Job>();
const listeners = new Set<() => void>();

/** Returns what is being done to an app, and renders again with every step. */
export function useJob(app: string): Job | undefined {
  const [, render] = useReducer((times: number) => times + 1, 0);
  useEffect(() => {
    const listener = () => render(undefined);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
  return jobs.get(app);
}

/** Whether something is being done. */
export function isBusy(job: Job | undefined): boolean {
  return job?.phase === "image" || job?.phase === "machines";
}

/** Forgets a job that has ended. */
export function dismiss(app: string): void {
  if (!isBusy(jobs.get(app))) jobs.delete(app);
  tell();
}

interface Deploy {
  app: string;
  image: string;
  description: string;
  prewarm: boolean;
  /** Called once the image is there. */
  targets(): Promise<Machine[]>;
}

/** Deploys an image: pulls it, records the release, and gives it to the machines one after the other. */
export async function deploy(api: BrowserClient, { app, image, description, prewarm, targets }: Deploy): Promise<void> {
  await work(app, { kind: "deploy", phase: "image", what: image, steps: [] }, async () => {
    await api.pullImage(image, { onProgress: (pull) => change(app, { pull }) });
    const release = await api.createRelease(app, { image, ...(description !== "" && { description }) });
    change(app, { release, phase: "machines" });
    await reporting(api, app, release, async () => {
      const withImage = (config: MachineConfig) => ({ ...config, image: release.pinned_image });
      await changeAll(api, app, await targets(), { kind: "deploy", change: withImage, prewarm });
    });
  });
}

/** Changes the configuration of some machines of an app. */
export async function changeSettings(
  api: BrowserClient,
  app: string,
  targets: readonly Machine[],
  changeOf: (config: MachineConfig) => MachineConfig,
): Promise<void> {
  await work(app, { kind: "settings", phase: "machines", what: "settings", steps: [] }, () =>
    changeAll(api, app, targets, { kind: "settings", change: changeOf, prewarm: false }),
  );
}

async function changeAll(
  api: BrowserClient,
  app: string,
  targets: readonly Machine[],
  options: { kind: Job["kind"]; change(config: MachineConfig): MachineConfig; prewarm: boolean },
): Promise<void> {
  change(app, {
    steps: targets.map(({ machine_id: id, name }) => ({ id, name, state: "waiting", note: "waits" })),
  });
  await rollOut(api, targets, {
    ...options,
    onStep: (step) =>
      change(app, { steps: (jobs.get(app)?.steps ?? []).map((one) => (one.id === step.id ? step : one)) }),
  });
}

async function work(app: string, job: Job, run: () => Promise<void>): Promise<void> {
  if (isBusy(jobs.get(app))) return;
  jobs.set(app, job);
  tell();
  addEventListener("beforeunload", stay);
  try {
    await run();
    change(app, { phase: "complete" });
  } catch (error) {
    change(app, { phase: "failed", error });
  } finally {
    if (![...jobs.values()].some(isBusy)) removeEventListener("beforeunload", stay);
  }
}

/** Tells the platform that the release is still being deployed, and how it ended. */
async function reporting(
  api: BrowserClient,
  app: string,
  { version }: Release,
  run: () => Promise<void>,
): Promise<void> {
  // A report that fails is followed by the next one.
  const report = () => void api.updateRelease(app, version, { status: "pending" }).catch(() => {});
  const timer = setInterval(report, REPORT_EVERY_MS);
  try {
    await run();
  } catch (error) {
    const description = (error instanceof Error ? error.message : String(error)).slice(0, LONGEST_DESCRIPTION);
    // The original error counts, even when the platform cannot be told.
    await api.updateRelease(app, version, { status: "failed", description }).catch(() => {});
    throw error;
  } finally {
    clearInterval(timer);
  }
  await api.updateRelease(app, version, { status: "complete" });
}

function change(app: string, parts: Partial<Job>): void {
  const job = jobs.get(app);
  if (job !== undefined) jobs.set(app, { ...job, ...parts });
  tell();
}

function tell(): void {
  for (const listener of listeners) listener();
}

/** The browser asks whether to leave: a deploy would stop half way. */
function stay(event: BeforeUnloadEvent): void {
  event.preventDefault();
}
