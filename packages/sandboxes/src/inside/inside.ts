/** The inside of one sandbox that a request is for, as the services need it. */
import type { SandboxView } from "../life/view.ts";
import { Files } from "./files.ts";
import type { SandboxGuest } from "./guest.ts";
import type { Processes } from "./processes.ts";
import { TRUST_ENV } from "./trust.ts";
import type { Watchers } from "./watchers.ts";

export interface Inside {
  view: SandboxView;
  guest: SandboxGuest;
  processes: Processes;
  watchers: Watchers;
  /** What the client's `Authorization: Basic <user>:` names. */
  named: string | undefined;
  /** Aborted when the response is over, or its client gone. */
  signal: AbortSignal;
  /** Breaks the response off, as clients expect it of a sandbox that is gone: they look whether it is. */
  breakOff(): void;
}

/** What every program of a sandbox has in its environment: what its template says, and above that its own. */
export function environmentOf({ record: { programs, sandbox } }: SandboxView): Record<string, string> {
  return { ...(sandbox.network?.rules !== undefined && TRUST_ENV), ...programs?.env, ...sandbox.env };
}

/** The files, as the request's user sees them. */
export async function filesOf({ guest, named, view, signal }: Inside): Promise<Files> {
  return new Files(guest, { user: await guest.user(named), workdir: view.record.programs?.workdir, signal });
}

/** The user of `Authorization: Basic`, which has no password. */
export function namedUser(authorization: string | undefined): string | undefined {
  const [scheme = "", encoded = ""] = (authorization ?? "").split(" ");
  if (scheme.toLowerCase() !== "basic") return undefined;
  const [user = ""] = Buffer.from(encoded, "base64").toString("utf8").split(":");
  return user === "" ? undefined : user;
}
