/** A new directory for each test, removed after it, and records to store. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { MachineEvent, MachineRecord } from "@hibernaut/domain/machine";
import { onTestFinished } from "vitest";

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "hibernaut-store-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export function machineRecord(changes: Partial<MachineRecord> = {}): MachineRecord {
  return {
    id: "0123456789abcd",
    app: "shop",
    name: "web-1",
    state: "created",
    goal: null,
    region: "local",
    version: "01HZZZZZZZZZZZZZZZZZZZZZZZ",
    config: { image: "oci:/srv/app:latest", env: { NAME: "välue" } },
    imageDigest: `sha256:${"0".repeat(64)}`,
    bundleVersion: "1",
    address: "10.0.0.2",
    snapshot: null,
    capturing: null,
    coldReason: "never ran",
    resetLayer: true,
    pending: null,
    lastBoot: null,
    stateReason: null,
    restarts: 0,
    createdAt: "2026-01-01T00:00:00.000Z",
    updatedAt: "2026-01-01T00:00:00.000Z",
    ...changes,
  };
}

export function machineEvent(changes: Partial<MachineEvent> = {}): MachineEvent {
  return { at: "2026-01-01T00:00:00.000Z", type: "create", from: null, to: "created", details: {}, ...changes };
}
