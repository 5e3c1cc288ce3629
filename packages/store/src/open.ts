/** The store in one SQLite file. */

import type { Database } from "better-sqlite3";
import { appStore } from "./apps.ts";
import { buildStore } from "./builds.ts";
import { certificateStore } from "./certificates.ts";
import type { Store } from "./contract.ts";
import { openDatabase } from "./database.ts";
import { deliveryStore } from "./deliveries.ts";
import { drainStore } from "./drain.ts";
import { explainFaults } from "./faults.ts";
import { hostnameStore } from "./hostnames.ts";
import { machineStore } from "./machines.ts";
import { outboxStore } from "./outbox.ts";
import { releaseStore } from "./releases.ts";
import { reservedNameStore } from "./reserved-names.ts";
import { secretStore } from "./secrets.ts";
import { sessionStore } from "./sessions.ts";
import { templateStore } from "./templates.ts";
import { timelineStore } from "./timeline.ts";
import { tokenStore } from "./tokens.ts";
import { usageStore } from "./usage.ts";
import { usageMeter } from "./usage-meter.ts";
import { volumeStore } from "./volumes.ts";
import { webhookStore } from "./webhooks.ts";

/**
 * Opens the store, and makes its file and directory when they don't exist. Throws `failed_precondition` when a newer
 * Hibernaut wrote the file. `now` is the clock that usage is measured with, in milliseconds since 1970.
 *
 * @example
 * const store = openStore(join(settings.dataDir, "hibernaut.db"));
 */
export function openStore(file: string, now: () => number = Date.now): Store {
  const db = openDatabase(file);
  const meter = usageMeter(db, now);
  const outbox = outboxStore(db);
  const timeline = timelineStore(db);
  return {
    apps: explainFaults(appStore(db, outbox)),
    machines: explainFaults(machineStore(db, { usage: meter, outbox, timeline })),
    outbox: explainFaults(outbox),
    timeline: explainFaults(timeline),
    tokens: explainFaults(tokenStore(db)),
    sessions: explainFaults(sessionStore(db)),
    hostnames: explainFaults(hostnameStore(db, outbox)),
    reservedNames: explainFaults(reservedNameStore(db)),
    certificates: explainFaults(certificateStore(db, outbox)),
    secrets: explainFaults(secretStore(db, outbox)),
    releases: explainFaults(releaseStore(db, outbox)),
    volumes: explainFaults(volumeStore(db, meter, outbox)),
    templates: explainFaults(templateStore(db, { outbox, usage: meter })),
    builds: explainFaults(buildStore(db)),
    drain: explainFaults(drainStore(db, outbox)),
    usage: explainFaults(usageStore(db, meter)),
    webhooks: explainFaults(webhookStore(db, outbox)),
    deliveries: explainFaults(deliveryStore(db)),
    ...explainFaults({ together: <T>(work: () => T): T => db.transaction(work).immediate() }),
    check: writeCheck(db),
    copyTo: async (path) => void (await db.backup(path)),
    close: () => void db.close(),
  };
}

/** Writes, because a read would not notice a full or a read-only disk. */
function writeCheck(db: Database): () => void {
  const write = db.prepare<[string]>("INSERT OR REPLACE INTO health (id, checked_at) VALUES (1, ?)");
  return () => void write.run(new Date().toISOString());
}
