/** What the platform's API answers with, as far as it is read here: the types of its document are the client's. */
import type { MachineConfig } from "@hibernaut/domain/config";
import type { MachineState } from "@hibernaut/domain/machine";

export interface PlatformMachine {
  id: string;
  app_name: string;
  name: string;
  state: MachineState;
  region: string;
  version: string;
  config: MachineConfig;
  image: { ref: string; digest: string };
  cordoned: boolean;
  /** What an update is about to make of it. */
  updating?: { version: string; config: MachineConfig };
  host_state?: "up" | "unreachable";
  checks: { name: string; status: string; output: string; updated_at: string }[];
  private_address: string;
  created_at: string;
  updated_at: string;
  /** Of the lease that was asked for. */
  nonce?: string;
}

export interface PlatformEvent {
  at: string;
  type: string;
  to: MachineState;
  details: Record<string, unknown>;
}

export interface PlatformApp {
  name: string;
  created_at: string;
  machine_count: number;
  urls: string[];
}

export interface PlatformVolume {
  id: string;
  name: string;
  state: string;
  size_gb: number;
  used_bytes: number;
  region: string;
  attached_machine_id: string | null;
  snapshot_retention: number;
  auto_backup_enabled: boolean;
  created_at: string;
}

export interface PlatformLease {
  nonce?: string;
  expires_at: string;
  owner: string;
  description?: string | null;
  version?: string;
}

export interface PlatformSecret {
  name: string;
  digest: string;
  updated_at: string;
}
