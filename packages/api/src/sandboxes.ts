/** What the API needs of the port of sandboxes, which is there only when a setting says so. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { LeaseTerms } from "@hibernaut/domain/lease";
import type { Sandbox, SandboxEnd } from "@hibernaut/domain/sandbox";
import type { MachineView } from "@hibernaut/machines";

/** What is chosen for a sandbox. */
export interface ChosenSandbox {
  /** Seconds. */
  timeout_s?: number | undefined;
  on_timeout?: SandboxEnd | undefined;
  auto_resume?: boolean | undefined;
  metadata?: Record<string, string> | undefined;
}

/** Machines that end when their time is over. A `word` is a machine's id, its name, or the beginning of its id. */
export interface ApiSandboxes {
  /** The URL of a port of a sandbox, with `{port}` and `{id}` in it. */
  portUrl: string;
  /** Makes one from a template of the app. */
  begin(
    app: string,
    template: string,
    chosen: ChosenSandbox,
    birth: {
      name?: string;
      cordoned?: boolean;
      skipLaunch?: boolean;
      env?: Record<string, string>;
      lease?: LeaseTerms;
    },
    signal: AbortSignal,
  ): Promise<MachineView>;
  /** What forks of the machine are. Undefined if the machine is not a sandbox itself. */
  heirOf(app: string, word: string): Sandbox | undefined;
  /** Forks were made. */
  forked(): void;
  /** Its owner has paused the machine, or woken it. */
  paused(app: string, word: string): void;
  resumed(app: string, word: string): void;
}

/** Throws `failed_precondition` while sandboxes are off: nobody would end one when its time is over. */
export function requireSandboxes(sandboxes: (() => ApiSandboxes | undefined) | undefined): ApiSandboxes {
  const open = sandboxes?.();
  if (open !== undefined) return open;
  const message =
    "Sandboxes are off, so that nothing would end this one. Set HIBERNAUT_SANDBOX_LISTEN (for example 127.0.0.1:7070) and restart the platform, or leave `sandbox` out.";
  throw new HibernautError("failed_precondition", message, { field: "sandbox" });
}
