/** What the machine of a release command is made of, and what its end means: pure rules. */
import type { MachineConfig } from "@hibernaut/domain/config";
import type { MachineEvent, MachineState } from "@hibernaut/domain/machine";
import type { GuestExit } from "@hibernaut/guest";

/** How a release command ended. */
export interface CommandVerdict {
  ok: boolean;
  /** Null when the command did not exit by itself. */
  exitCode: number | null;
  /** For people, such as `the app exited with code 1`. */
  reason: string;
}

/** Why the platform waits no longer. */
export type CommandEnd = { state: MachineState } | "timeout" | "cancelled";

/**
 * Returns the configuration of the machine: the one that was sent, with the release's image and without what would let
 * others reach it, keep it or start it again.
 */
export function commandConfig(wanted: MachineConfig, image: string): MachineConfig {
  const {
    services: _s,
    checks: _c,
    mounts: _m,
    schedule: _w,
    schedule_timezone: _z,
    auto_destroy: _d,
    ...config
  } = wanted;
  return { ...config, image, env: { ...config.env, RELEASE_COMMAND: "1" }, restart: { policy: "no" } };
}

/** Judges the command. Only an app that exited by itself, with code 0, has succeeded. `events` are newest first. */
export function verdictOf(
  end: CommandEnd,
  {
    stateReason,
    events,
    timeoutMs,
  }: { stateReason: string | null; events: readonly MachineEvent[]; timeoutMs: number },
): CommandVerdict {
  const failed = (reason: string): CommandVerdict => ({ ok: false, exitCode: null, reason });
  if (end === "timeout") return failed(`it did not exit within ${timeoutMs / 1000} s`);
  if (end === "cancelled") return failed("it was cancelled");
  const exited = events.find(({ type }) => type === "app_ended");
  if (end.state === "failed" && exited === undefined)
    return failed(stateReason ?? "its machine failed, and the log says why");
  if (exited === undefined) return failed(`its machine was ${end.state} before it exited`);
  const { code, signal, reason } = exited.details as Partial<GuestExit> & { reason?: string };
  const text = (reason ?? "it exited").replace(/^the app /, "it ");
  if (signal !== undefined && signal !== 0) return failed(text);
  return { ok: code === 0, exitCode: code ?? null, reason: text };
}
