/** What the records in the data directory say: what would be lost, is late, or is full. */
import { join } from "node:path";
import type { GuestBundle } from "@hibernaut/domain/guest-bundle";
import type { AcceleratorChoice } from "@hibernaut/hypervisor/qemu/accelerator";
import { messageOf } from "@hibernaut/lib/text";
import type { Settings } from "@hibernaut/settings";
import { type Diagnosis, examine } from "./diagnosis.ts";
import type { Sleepers } from "./sleepers.ts";

/** The machines of the data directory, or why they cannot be read. */
export async function sleepersOf(dataDir: string): Promise<Sleepers | string> {
  try {
    const { findSleepers } = await import("./sleepers.ts");
    return await findSleepers(dataDir);
  } catch (error) {
    return messageOf(error);
  }
}

/** Whether scheduled snapshots of volumes are taken. Nothing without any. */
export async function* checkVolumes(dataDir: string): AsyncIterable<Diagnosis> {
  const name = "volumes";
  try {
    const { readScheduledVolumes } = await import("@hibernaut/store/read");
    const volumes = readScheduledVolumes(join(dataDir, "hibernaut.db"));
    if (volumes.length === 0) return;
    const late = volumes.filter(({ schedule }) => schedule.trouble !== null);
    const [first] = late;
    if (first === undefined)
      yield { name, status: "ok", found: `${volumes.length} with scheduled snapshots, none late` };
    else
      yield {
        name,
        status: "warn",
        found: `the scheduled snapshot of ${late.length} of ${volumes.length} volumes is late: ${late.map(({ id }) => id).join(", ")}. ${first.schedule.trouble?.reason ?? ""}`,
        fix: `hibernaut volumes show ${first.id} --app ${first.app}`,
      };
  } catch (error) {
    yield { name, status: "warn", found: `the volumes cannot be read: ${messageOf(error)}` };
  }
}

/** Whether certificates can be had and renewed. Nothing without any. */
export async function* checkCertificates(dataDir: string): AsyncIterable<Diagnosis> {
  const name = "certificates";
  try {
    const { readManagedCertificates } = await import("@hibernaut/store/read");
    const managed = readManagedCertificates(join(dataDir, "hibernaut.db"));
    if (managed.length === 0) return;
    const late = managed.filter(({ failure }) => failure !== null);
    const [first] = late;
    if (first === undefined) {
      yield { name, status: "ok", found: `${managed.length} managed, and the last order of each succeeded` };
      return;
    }
    const until = await expiry(dataDir, first.name);
    const has = until === undefined ? "has none" : `has one until ${new Date(until).toISOString()}`;
    yield {
      name,
      status: "warn",
      found: `${late.length} of ${managed.length} could not be had or renewed: ${late.map((each) => each.name).join(", ")}. ${first.name} ${has}. ${first.failure?.reason ?? ""}`,
      fix: `hibernaut certs check ${first.name} --app ${first.app}`,
    };
  } catch (error) {
    yield { name, status: "warn", found: `the certificates cannot be read: ${messageOf(error)}` };
  }
}

/** When the stored certificate of a name expires, in milliseconds since 1970. Undefined if there is none. */
async function expiry(dataDir: string, name: string): Promise<number | undefined> {
  const { CertificateFiles } = await import("@hibernaut/certs/files");
  const { certificatesFolder } = await import("@hibernaut/certs");
  const stored = await new CertificateFiles(certificatesFolder(dataDir)).readAll(() => {}).catch(() => undefined);
  return stored?.get(name)?.notAfter;
}

/** Says nothing where no app has a limit. */
export async function* checkQuotas(settings: Settings): AsyncIterable<Diagnosis> {
  const name = "quotas";
  try {
    const { quotaUse } = await import("./quotas.ts");
    const { limited, full } = quotaUse(settings);
    const [first] = full;
    if (first !== undefined) {
      const found = full.map(({ text }) => text).join(", ");
      yield { name, status: "warn", found, fix: `hibernaut apps show ${first.app}` };
    } else if (limited > 0) yield { name, status: "ok", found: `${limited} with limits, all with room` };
  } catch (error) {
    yield { name, status: "warn", found: `what apps have cannot be read: ${messageOf(error)}` };
  }
}

/** Whether strangers can write to the etcd of this host's cluster. Nothing on a host alone. */
export async function* checkEtcd(dataDir: string): AsyncIterable<Diagnosis> {
  const name = "cluster";
  const { isInCluster, readHome } = await import("@hibernaut/cluster/home");
  try {
    if (!isInCluster(dataDir)) return;
    const { guardOf } = await import("@hibernaut/cluster/etcd/guard");
    const { guarded, found } = guardOf((await readHome(dataDir)).directory);
    yield guarded ? { name, status: "ok", found } : { name, status: "warn", found: `${found}; see docs/cluster.md` };
  } catch (error) {
    yield { name, status: "fail", found: messageOf(error) };
  }
}

/** Whether the next start would cost sleeping machines their memory. */
export async function checkSnapshots(
  sleepers: Sleepers | string,
  settings: Settings,
  installed: { bundle: GuestBundle } & Pick<AcceleratorChoice, "accelerator" | "cpu">,
): Promise<Diagnosis> {
  return examine("snapshots", { status: "warn" }, async () => {
    if (typeof sleepers === "string") return { status: "warn", found: `the machines cannot be read: ${sleepers}` };
    const { unfitSleepers } = await import("./sleepers.ts");
    const { unfitText } = await import("@hibernaut/machines/unfit-snapshots");
    const asleep = sleepers.machines.filter(({ snapshot }) => snapshot !== null).length;
    const unfit = await unfitSleepers(sleepers, settings, installed);
    if (unfit.length === 0) return { status: "ok", found: `all sleeping machines can resume (${asleep})` };
    return {
      status: "warn",
      found: `the next start is refused, because it would cost sleeping machines their memory (${unfit.length} of ${asleep}): ${unfitText(unfit)}`,
      fix: "undo what has changed, or give the memory up: hibernaut serve --drop-snapshots",
    };
  });
}
