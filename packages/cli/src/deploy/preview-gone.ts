/** Why a deploy to a preview failed: someone may have destroyed the preview meanwhile. */
import { setTimeout as delay } from "node:timers/promises";
import type { HibernautClient } from "@hibernaut/client";
import type { Context } from "../context.ts";
import { CliError, Interrupted, toFailure } from "../failure.ts";

/** As long as an app takes that is destroyed whole, in milliseconds. */
const GOING_MS = 60_000;
const LOOK_MS = 200;

/** Returns what to say of a deploy that failed: that the preview is gone, if it is, or else what went wrong. Never rejects. */
export async function unlessGone(context: Context, error: unknown): Promise<unknown> {
  if (error instanceof Interrupted) return error;
  const { app } = context;
  try {
    const client = await context.client();
    const isGoing = await isBeingDestroyed(client, app, error);
    for (const end = Date.now() + GOING_MS; ; await delay(LOOK_MS)) {
      await client.getApp(app);
      if (!isGoing || Date.now() > end) return error;
    }
  } catch (missing) {
    if (toFailure(missing).error !== "not_found") return error;
    return new CliError(
      "aborted",
      `Preview ${app} was destroyed while it was deployed, and nothing of it is left. If it is still needed, deploy it again.`,
    );
  }
}

/** Whether what went wrong is what happens in a preview that goes: it takes nothing new, and its machines end first. */
async function isBeingDestroyed(client: HibernautClient, app: string, error: unknown): Promise<boolean> {
  const { error: code, details } = toFailure(error);
  if (code === "aborted") return details.app_name === app;
  const { machine_id: id } = details;
  return typeof id === "string" && !(await client.listMachines(app)).some((machine) => machine.id === id);
}
