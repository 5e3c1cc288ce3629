/** `kill_signal`, `kill_timeout` and `swap_size_mb`: keys at the top of the file. */
import { constants } from "node:os";
import { STOP_TIMEOUT_S } from "@hibernaut/domain/limits";
import type { Section } from "./section.ts";

/** What the platform accepts, like Fly. */
const SWAP_MB = { minimum: 0, maximum: 32_768 } as const;

/** The name of the signal that asks the app to exit. */
export function readKillSignal(top: Section): string | undefined {
  const name = top.string("kill_signal");
  if (name === undefined || name === "" || Object.hasOwn(constants.signals, name)) return name || undefined;
  return top.error("kill_signal", `Unknown signal "${name}". Use one of signal(7), such as SIGTERM or SIGINT.`);
}

/** In whole seconds, as the platform counts them. */
export function readKillTimeout(top: Section): number | undefined {
  const seconds = top.seconds("kill_timeout", "s", STOP_TIMEOUT_S.maximum);
  return seconds === undefined ? undefined : Math.ceil(seconds);
}

/** Swap in MB. */
export function readSwap(top: Section): number | undefined {
  return top.integer("swap_size_mb", SWAP_MB);
}
