/** Apps, volumes, leases and secrets as Fly's clients see them. Pure. */
import { crc32 } from "node:zlib";
import type { PlatformApp, PlatformLease, PlatformSecret, PlatformVolume } from "./platform.ts";

/** There are no organisations: all apps are of one, which every client knows. */
export const ORGANIZATION = { name: "personal", slug: "personal", internal_numeric_id: 1 } as const;

const BYTES_IN_GB = 1024 ** 3;
/** Clients keep it in 32 bits with a sign. */
const MOST_ID = 0x7fffffff;
/** Of ext4. In bytes. */
const BLOCK_SIZE = 4096;

export function appView({ name, machine_count, urls }: PlatformApp, volumeCount?: number) {
  const [url] = urls;
  return {
    // There is no other id than the name.
    id: name,
    name,
    internal_numeric_id: crc32(name) & MOST_ID,
    network: "default",
    status: machine_count === 0 ? "pending" : "deployed",
    machine_count,
    ...(volumeCount !== undefined && { volume_count: volumeCount }),
    organization: ORGANIZATION,
    cname_target: url === undefined ? "" : new URL(url).hostname,
    app_role: "",
  };
}

export function volumeView({ used_bytes: used, attached_machine_id: machine, ...volume }: PlatformVolume) {
  const { id, name, state, size_gb, region, created_at, snapshot_retention, auto_backup_enabled } = volume;
  const total = size_gb * BYTES_IN_GB;
  const free = Math.max(0, Math.floor((total - used) / BLOCK_SIZE));
  return {
    ...{ id, name, state, size_gb, region, created_at, snapshot_retention, auto_backup_enabled },
    zone: region,
    encrypted: false,
    fstype: "ext4",
    type: "local",
    host_status: "ok",
    ...(machine !== null && { attached_machine_id: machine }),
    ...{ block_size: BLOCK_SIZE, blocks: total / BLOCK_SIZE, blocks_free: free, blocks_avail: free },
    ...{ bytes_used: used, bytes_total: total },
  };
}

/** Clients read it at the top, or in `data`, by their age. */
export function leaseView({ nonce, expires_at, owner, description, version }: PlatformLease) {
  const data = {
    ...(nonce !== undefined && { nonce }),
    expires_at: Math.floor(Date.parse(expires_at) / 1000),
    owner,
    description: description ?? "",
    version: version ?? "",
  };
  return { status: "success", data, ...data };
}

export function secretView({ name, digest, updated_at }: PlatformSecret) {
  return { name, digest, created_at: updated_at, updated_at };
}
