/** Types of routes that the client does not have yet. */
import type { Scope } from "@hibernaut/client/browser";

/** Who is signed in, and what for. */
export interface Session {
  token: { id: string; name: string };
  scopes: Scope[];
  /** The only apps that it reaches; null for all, and the platform itself. */
  apps: string[] | null;
  expires_at: string | null;
}

export type SpanState = "running" | "warm" | "suspended" | "stopped" | "failed";
export type WakeKind = "warm" | "resume" | "cold";

/** What a machine did over time. */
export interface MachineTimeline {
  app_name: string;
  machine_id: string;
  name: string;
  state: string;
  spans: { state: SpanState; from: string; until: string }[];
  wakes: { at: string; kind: WakeKind; reason: string; duration_ms: number }[];
  wakes_left_out: number;
}

/** What machines did over time. */
export interface Timeline {
  from: string;
  until: string;
  machines: MachineTimeline[];
}

/** How machines woke, hour by hour. */
export interface Wakes {
  from: string;
  until: string;
  hours: { from: string; kinds: Partial<Record<WakeKind, { count: number; p50_ms: number; p99_ms: number }>> }[];
}

/** What the platform runs on, and what of it is taken. */
export interface Host {
  memory: { total_bytes: number; available_bytes: number | null };
  disk: { total_bytes: number; free_bytes: number };
  warm: { budget_bytes: number; used_bytes: number; machines: number };
  cpus: { count: number; load: number[] };
  accelerator: { name: string; reason: string };
  versions: { platform: string; qemu: string; node: string; kernel: string; guest_bundle: string };
  uptime_seconds: number;
  host_uptime_seconds: number;
}

/** The outcome of one check of the host. */
export interface Finding {
  level: "ok" | "warning" | "error";
  name: string;
  message: string;
  advice: string | null;
}
