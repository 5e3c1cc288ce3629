/** Machines of hosts that do not answer, as far as this host's copy of the cluster's directory knows them. */
import type { Owned, View } from "@hibernaut/cluster";
import { type ClusterRecord, type ConfigRecord, KEYS } from "@hibernaut/cluster/keys";
import { ulidMs } from "@hibernaut/machines";
import type { MachineWire } from "../routes/machines.schemas.ts";

interface Wanted {
  /** The hosts that did not answer. */
  hosts: readonly string[];
  /** Whether a machine of an app is listed. */
  wants(app: string): boolean;
}

/** Returns the machines of hosts, each as its owner last published it, and said to be unreachable. */
export function lastKnown(view: View, { hosts, wants }: Wanted): MachineWire[] {
  if (hosts.length === 0) return [];
  const { region = "" } = (view.value(KEYS.cluster) ?? {}) as Partial<ClusterRecord>;
  return view
    .machines()
    .filter(({ app, host }) => hosts.includes(host) && wants(app))
    .map((machine) => ({ ...wire(machine, view), region }));
}

function wire({ id, app, name, host, address }: Owned, view: View): Omit<MachineWire, "region"> {
  const state = view.state(id)?.state;
  const known = view.value(`${KEYS.configs}${id}`) as ConfigRecord | undefined;
  const {
    version = "",
    config = { image: "unknown" },
    imageDigest = "",
    createdAt = new Date(0).toISOString(),
  } = known ?? {};
  const silence = view.host(host)?.up === undefined ? "is away" : "could not be asked";
  const what =
    state === undefined ? "it has published no state of the machine" : "the state is the last that it published";
  return {
    ...{ machine_id: id, id, app_name: app, name, host, host_state: "unreachable", version, config },
    state: state ?? "created",
    state_reason: null,
    unreachable: `host ${host} ${silence}; ${what}`,
    image: { ref: config.image, digest: imageDigest },
    health: { status: "unknown", reason: `host ${host} ${silence}` },
    suspend: { eligible: false, reasons: [`host ${host} ${silence}`] },
    guest_bundle: { version: "", current: false, update_pending: false },
    ...{ cordoned: false, checks: [], snapshot: null, last_boot: null, prewarm: null, keep_awake: null, lease: null },
    ...{ next_run: null, wake_at: null, crash: null, origin: null, sandbox: null },
    private_address: address,
    created_at: createdAt,
    // What is known of it last changed with its version.
    updated_at: version === "" ? createdAt : new Date(ulidMs(version)).toISOString(),
  };
}
