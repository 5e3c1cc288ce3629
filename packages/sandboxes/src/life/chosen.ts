/** What a client chooses for a new sandbox, and what the record says then. */
import type { LeaseTerms } from "@hibernaut/domain/lease";
import type { Sandbox, SandboxNetwork } from "@hibernaut/domain/sandbox";
import { Refusal } from "../failure.ts";
import type { WantedMount } from "../volume/volumes.ts";
import { MOST_ENV_BYTES, MOST_METADATA_BYTES, MOST_TIMEOUT_S } from "./limits.ts";
import type { AddedHeaders } from "./rules.ts";

export interface ChosenSandbox {
  template: string;
  timeoutS: number;
  onTimeout: Sandbox["on_timeout"];
  /** Whether a pause when its time is over keeps the memory. */
  keepMemory: boolean;
  autoResume: boolean;
  secure: boolean;
  metadata: Record<string, string>;
  env: Record<string, string>;
  /** Without what is added to requests. */
  network?: Omit<SandboxNetwork, "rules"> | undefined;
  added?: AddedHeaders | undefined;
  allowInternetAccess?: boolean | undefined;
  /** With some, it begins with the files of its template, and without the memory. */
  volumes?: readonly WantedMount[] | undefined;
}

/** What is chosen for the machine itself. */
export interface ChosenBirth {
  name?: string;
  cordoned?: boolean;
  skipLaunch?: boolean;
  /** For programs that start later. One with an environment of its own does not come from a pool. */
  env?: Record<string, string>;
  /** A client has this lease on it from the beginning. */
  lease?: LeaseTerms;
}

/** Returns what makes a machine this sandbox. Throws a {@link Refusal} for what no sandbox can be. */
export function sandboxOf(chosen: ChosenSandbox, now: number): Sandbox {
  const { template, metadata, env, network, allowInternetAccess, secure } = chosen;
  requireTimeout(chosen.timeoutS);
  requireSize("metadata", metadata, MOST_METADATA_BYTES);
  requireSize("envVars", env, MOST_ENV_BYTES);
  if (chosen.autoResume && chosen.onTimeout !== "pause")
    throw new Refusal(400, "`autoResume` needs `autoPause`: a sandbox that is killed cannot be resumed.");
  return {
    ...{ template, metadata, env, secure },
    started_at: new Date(now).toISOString(),
    ends_at: endAfter(chosen.timeoutS, now),
    timeout_s: chosen.timeoutS,
    on_timeout: chosen.onTimeout,
    auto_resume: chosen.autoResume,
    ...(!chosen.keepMemory && { keep_memory: false as const }),
    ...(network !== undefined && { network }),
    ...(allowInternetAccess !== undefined && { allow_internet_access: allowInternetAccess }),
  };
}

/** Returns what makes a fork a sandbox, that lives that long from now. It is not paused, whatever its parent is. */
export function heirOf({ paused: _paused, ...parent }: Sandbox, timeoutS: number, now: number): Sandbox {
  const times = { started_at: new Date(now).toISOString(), ends_at: endAfter(timeoutS, now), timeout_s: timeoutS };
  return { ...parent, ...times };
}

/** Throws a {@link Refusal} when no sandbox may live that long. */
export function requireTimeout(seconds: number): void {
  if (seconds > MOST_TIMEOUT_S)
    throw new Refusal(
      400,
      `The timeout cannot be greater than ${MOST_TIMEOUT_S / 3600} hours; it can be set again later.`,
    );
}

/** RFC 3339. */
export function endAfter(seconds: number, now: number): string {
  return new Date(now + seconds * 1000).toISOString();
}

function requireSize(field: string, record: Record<string, string>, most: number): void {
  if (Buffer.byteLength(JSON.stringify(record)) > most)
    throw new Refusal(400, `\`${field}\` has more than ${most} bytes. Store the rest in a file of the sandbox.`);
}
