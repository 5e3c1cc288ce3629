/** Mends what a host has of its cluster, while its platform is stopped. A composition root of its own. */
import { HibernautError } from "@hibernaut/domain/errors";
import { wiping } from "@hibernaut/lib/wipe";
import { REPAIR, readKey } from "@hibernaut/secrets/key";
import type { Directory, Entry } from "./contract.ts";
import { makeEtcdCertificates, startText } from "./etcd/certificates.ts";
import type { EtcdTls } from "./etcd/gateway.ts";
import { requireGuarded } from "./etcd/guard.ts";
import { type Home, isInCluster, keyFileOf, openUnsigned, placeText, readHome, replacePlace } from "./home.ts";
import { type HostSettings, offline } from "./join.ts";
import { KEYS, ROOT } from "./keys.ts";
import { requireCluster } from "./membership.ts";
import { RecordSeal } from "./signed-directory.ts";

interface SignOptions {
  settings: HostSettings;
  /** Is asked with the keys of all records that would be signed. Rejects to leave them as they are. */
  agree(keys: readonly string[]): Promise<void>;
}

/**
 * Signs what is in the directory of this host's cluster and no host believes. Resolves with the keys. Rejects with
 * `failed_precondition` while the platform runs, and when this host is in no cluster.
 */
export async function signCluster({ settings, agree }: SignOptions): Promise<string[]> {
  return offline(settings, async (dataDir) => {
    const home = await homeOf(dataDir);
    const directory = await openUnsigned(home.directory);
    try {
      await requireCluster(directory, home);
      const seal = sealOf(dataDir, home);
      const unsigned = await unsignedRecords(directory, seal);
      await agree(unsigned.map(({ key }) => key));
      const signed: string[] = [];
      for (const entry of unsigned) if (await signRecord(directory, seal, entry)) signed.push(entry.key);
      return signed;
    } finally {
      await directory.close();
    }
  });
}

interface EtcdOptions {
  settings: HostSettings;
  /** Its members' client URLs. Default: those that the host has. */
  etcd?: string[] | undefined;
  /** Default: the certificates that the host has. */
  tls?: EtcdTls | undefined;
  /** Makes new certificates, for the members and for all hosts. */
  renew?: boolean | undefined;
  /** Whether everyone in the network may be able to write to it. */
  insecure?: boolean | undefined;
}

/**
 * Changes where this host finds etcd, and the certificates that it shows there. Resolves with how to start the members when
 * it made new ones. Nobody is asked: the next start of the platform is.
 */
export async function changeEtcd(options: EtcdOptions): Promise<{ directory: string; start: string | undefined }> {
  return offline(options.settings, async (dataDir) => {
    const home = await homeOf(dataDir);
    if (!("etcd" in home.directory))
      throw new HibernautError("failed_precondition", `This cluster has no etcd: ${placeText(home.directory)}.`);
    const { etcd = home.directory.etcd, tls = home.directory.tls, renew = false } = options;
    const insecure = options.insecure ?? home.directory.insecure;
    requireGuarded({ etcd, insecure });
    const made = renew ? await makeEtcdCertificates(dataDir, { clusterId: home.id, urls: etcd }) : tls;
    const directory = { etcd, tls: made, insecure };
    await replacePlace(dataDir, { ...home, directory });
    return { directory: placeText(directory), start: renew ? startText(dataDir, etcd) : undefined };
  });
}

/** They live with a lease, which a new value would take from them. They end soon, and are made again signed. */
const LEASED = [KEYS.hosts, KEYS.joins, KEYS.released];

/** The records that no host believes, because they are not signed with this key. */
async function unsignedRecords(directory: Directory, seal: RecordSeal): Promise<Entry[]> {
  const { entries } = await directory.list(ROOT);
  return entries.filter(
    ({ key, value }) => !LEASED.some((prefix) => key.startsWith(prefix)) && seal.open(key, value) === undefined,
  );
}

/** Signs one. One that has changed meanwhile is left as it is. Resolves with whether it is signed now. */
async function signRecord(directory: Directory, seal: RecordSeal, entry: Entry): Promise<boolean> {
  const change = { key: entry.key, value: seal.sign(entry.key, valueOf(entry.value)) };
  return (await directory.transact([entry], [change])) !== undefined;
}

/** What a record says, without the signature of another key that it may have. */
function valueOf(text: string): string {
  const { record, mac } = JSON.parse(text) as { record?: unknown; mac?: unknown };
  return record !== undefined && typeof mac === "string" ? JSON.stringify(record) : text;
}

async function homeOf(dataDir: string): Promise<Home> {
  if (isInCluster(dataDir)) return readHome(dataDir);
  throw new HibernautError("failed_precondition", "This host is not in a cluster, so there is nothing to change.");
}

function sealOf(dataDir: string, { id }: Home): RecordSeal {
  const keyFile = keyFileOf(dataDir);
  return wiping(readKey(keyFile), (key) => {
    if (key !== undefined) return new RecordSeal(key, id);
    throw new HibernautError("failed_precondition", `The key of the secrets, ${keyFile}, is missing. ${REPAIR}`);
  });
}
