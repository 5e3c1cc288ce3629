/** A machine that is a sandbox, as E2B's clients see it. */

import type { MachineRecord, MachineState } from "@hibernaut/domain/machine";
import { wantedOf } from "@hibernaut/domain/mounts";
import type { Sandbox } from "@hibernaut/domain/sandbox";
import { given } from "@hibernaut/lib/given";
import type { MachineView } from "@hibernaut/machines";

/** The version of E2B's own agent whose protocol is spoken. Clients choose by it what they ask for. */
export const INSIDE_VERSION = "0.6.4";

export type SandboxState = "running" | "paused";

/** A machine that is a sandbox. */
export interface SandboxView {
  record: MachineRecord & { sandbox: Sandbox };
}

const AWAKE: ReadonlySet<MachineState> = new Set(["running", "starting", "restarting", "updating"]);
const PASSING: ReadonlySet<MachineState> = new Set(["starting", "restarting", "updating", "suspending", "stopping"]);
const GONE: ReadonlySet<MachineState> = new Set(["destroyed", "destroying"]);

/** Undefined unless the machine is a sandbox, and there to be used. */
export function asSandbox({ record }: Pick<MachineView, "record">): SandboxView | undefined {
  const { sandbox } = record;
  return sandbox === undefined || GONE.has(record.state) ? undefined : { record: { ...record, sandbox } };
}

/** Whether it runs, or is about to. Anything else is asleep, and can be woken. */
export function stateOf({ record }: SandboxView): SandboxState {
  return AWAKE.has(record.state) ? "running" : "paused";
}

/** Whether nothing is in progress: it will not run, or sleep, by itself. */
export function isSteady({ record }: SandboxView): boolean {
  return !PASSING.has(record.state);
}

/** How the API lists a sandbox. */
export function listedWire(view: SandboxView) {
  const { id, sandbox, config, origin } = view.record;
  return {
    sandboxID: id,
    templateID: origin?.template ?? sandbox.template,
    alias: sandbox.template,
    clientID: "hibernaut",
    startedAt: sandbox.started_at,
    endAt: sandbox.ends_at,
    cpuCount: Math.max(1, Math.ceil(config.guest?.cpus ?? 1)),
    memoryMB: config.guest?.memory_mb ?? 256,
    diskSizeMB: 0,
    metadata: sandbox.metadata,
    state: stateOf(view),
    envdVersion: INSIDE_VERSION,
    volumeMounts: (config.mounts ?? []).map((mount) => ({ name: mount.name ?? wantedOf(mount), path: mount.path })),
  };
}

/** How the API tells about one sandbox. `token` opens its files and processes. */
export function detailWire(view: SandboxView, { domain, token }: { domain: string; token: string | undefined }) {
  const { sandbox } = view.record;
  const { network } = sandbox;
  return {
    ...listedWire(view),
    domain,
    ...given({ envdAccessToken: token, allowInternetAccess: sandbox.allow_internet_access }),
    lifecycle: { autoResume: sandbox.auto_resume, onTimeout: sandbox.on_timeout },
    ...(network !== undefined && {
      network: {
        ...given({
          allowOut: network.allow_out,
          denyOut: network.deny_out,
          allowPublicTraffic: network.allow_public_traffic,
          maskRequestHost: network.mask_request_host,
        }),
      },
    }),
  };
}
