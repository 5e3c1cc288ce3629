/** When a start is over. */
import type { GuestAgent } from "@hibernaut/guest";
import { never, within } from "@hibernaut/lib/async";
import type { Boot, EffectOutcome } from "../decide/index.ts";
import type { EffectPorts } from "./ports.ts";

type ReadyPorts = Pick<EffectPorts, "settings" | "guest" | "note">;

/**
 * Running means that the app listens where it said it would, that it is known to listen elsewhere, that it ended, or
 * that it had its time.
 */
export async function untilReady(
  { agent, booted }: { agent: GuestAgent; booted(): Boot },
  { settings, guest, note }: ReadyPorts,
  signal: AbortSignal,
): Promise<EffectOutcome> {
  const limit = within(signal, settings.readyTimeoutMs, "listening on its ports");
  const ready = agent.ready(limit).then(
    () => "ready" as const,
    (error: unknown) => error,
  );
  const judged = guest.live === undefined ? [] : [guest.live.reachability.judged];
  const first = await Promise.race([ready, guest.exited(), ...judged]);
  if (guest.exit !== undefined) return { type: "app_ended", exit: guest.exit, boot: booted() };
  signal.throwIfAborted();
  if (first === "ready") return { type: "started", boot: booted() };
  const elsewhere = guest.live?.reachability.why;
  if (elsewhere !== undefined) return { type: "started", boot: booted(), details: { warning: elsewhere } };
  if (!limit.aborted) throw first;
  const stateReason = "the app does not listen on all ports of its services yet";
  void agent.ready(never()).then(
    () => note({ type: "reason_over", reason: stateReason }),
    () => {}, // the guest ended first
  );
  return { type: "started", boot: { ...booted(), stateReason }, details: { warning: stateReason } };
}
