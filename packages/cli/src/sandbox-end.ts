/** When and how a sandbox ends, in words. */
import type { Sandbox } from "@hibernaut/client";
import { localTime } from "./local-time.ts";

/** `destroyed at 2026-01-31 21:00:00 +09:00`: what happens if it runs by then. */
export function sandboxEnd({ on_timeout: what, ends_at: at }: Sandbox): string {
  return `${what === "kill" ? "destroyed" : "paused"} at ${localTime(at)}`;
}
