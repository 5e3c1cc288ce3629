/** A machine as the API shows it, for tests of what the dashboard makes of it. */
import type { Machine } from "@hibernaut/client";

/** Returns a machine that runs and is well, except for what is given. */
export function machine(parts: Partial<Machine>): Machine {
  const id = parts.machine_id ?? "a1";
  const time = "2026-01-31T14:30:00.000Z";
  return {
    machine_id: id,
    id,
    app_name: "shop",
    name: `web-${id}`,
    state: "running",
    state_reason: null,
    unreachable: null,
    cordoned: false,
    region: "local",
    version: "01",
    config: { image: "oci:/srv/shop", guest: { cpus: 1, memory_mb: 256 } },
    image: { ref: "oci:/srv/shop", digest: "sha256:0" },
    health: { status: "healthy", reason: "" },
    checks: [],
    guest_bundle: { version: "1", current: true, update_pending: false },
    suspend: { eligible: true, reasons: [] },
    snapshot: null,
    last_boot: null,
    prewarm: null,
    keep_awake: null,
    lease: null,
    next_run: null,
    wake_at: null,
    crash: null,
    origin: null,
    sandbox: null,
    private_address: "10.0.0.2",
    created_at: time,
    updated_at: time,
    ...parts,
  };
}
