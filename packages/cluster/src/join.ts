/** Makes a host part of a cluster, or no longer part of it, while its platform is stopped. A composition root of its own. */
import { randomBytes } from "node:crypto";
import { hostname, networkInterfaces } from "node:os";
import { join } from "node:path";
import { HibernautError, isHibernautError } from "@hibernaut/domain/errors";
import { keyFingerprint, makeKey, publicKeyOf } from "@hibernaut/lib/certificates";
import { wiping } from "@hibernaut/lib/wipe";
import { chooseForAll, useSubnet } from "@hibernaut/network/agreed";
import { makeKey as makeSecretsKey, readKey } from "@hibernaut/secrets/key";
import type { Settings } from "@hibernaut/settings";
import type { Store } from "@hibernaut/store";
import { openDataDir } from "@hibernaut/store/data-dir";
import { openStore } from "@hibernaut/store/open";
import { certificateHash, nameTaken } from "./admission.ts";
import { agreedRecords } from "./agreed/records.ts";
import { askToJoin } from "./ask-to-join.ts";
import type { Change, Directory } from "./contract.ts";
import { areOurs, ETCD_FOLDER, makeEtcdCertificates, startText } from "./etcd/certificates.ts";
import { requireGuarded } from "./etcd/guard.ts";
import {
  type DirectoryPlace,
  draftKeyFile,
  type Home,
  isInCluster,
  keyFileOf,
  openDirectory,
  placeText,
  publishDraft,
  readDraft,
  readHome,
  removeDraft,
  removeHome,
  writeDraft,
} from "./home.ts";
import { requireHostName, suggestedName } from "./host-name.ts";
import { makeClusterAuthority, signHost } from "./identity.ts";
import { readJoinToken } from "./join-token.ts";
import { type ClusterRecord, KEYS, type MemberRecord, type OwnerRecord } from "./keys.ts";
import { requireCluster, requireMember } from "./membership.ts";
import { configOf, nameKey, ownerOf } from "./ownership/claims.ts";
import { splitAddress } from "./peers.ts";
import { deletion, put, read } from "./stored.ts";

/** etcd takes up to 128 changes in a transaction by default. */
const MOST_CHANGES = 100;
/** And requests of up to 1.5 MB, in which text is a third longer. */
const MOST_BYTES = 512 * 1024;

export type HostSettings = Pick<Settings, "dataDir" | "region"> & Partial<Pick<Settings, "networkSubnet">>;

interface PlaceOptions {
  settings: HostSettings;
  /** Default: the first part of the computer's name. */
  name?: string | undefined;
  /** Where other hosts reach this one: `host:port`, or a host. Default: an address of this computer. */
  peer?: string | undefined;
}

interface JoinOptions extends PlaceOptions {
  token: string;
  /** Of Hibernaut on this host: the others must be able to work with it. */
  version: string;
  /** Where this host reaches etcd, if not where the others do. */
  etcd?: string[] | undefined;
  /** Whether everyone in the network may be able to write to etcd. */
  insecureEtcd?: boolean | undefined;
}

interface InitOptions extends PlaceOptions {
  directory: DirectoryPlace;
  /** Makes certificates for etcd, and for the hosts to show etcd. Without, `directory` has those that there are. */
  etcdCertificates?: boolean | undefined;
}

/** What was done, for people. */
interface Joined {
  clusterId: string;
  host: string;
  region: string;
  directory: string;
}

/**
 * Makes a cluster of which this host is the first member, and shares what the host has. Rejects with
 * `failed_precondition` while the platform runs, when this host is in a cluster, and when the directory has another
 * cluster's data or is open to strangers; with `unavailable` while etcd does not answer, and then with how to start one for
 * which certificates were made. Can be repeated when it was cut short.
 */
export async function initCluster(options: InitOptions): Promise<Joined> {
  const { settings } = options;
  requireGuarded(options.directory);
  return offline(settings, async (dataDir) => {
    requireAlone(dataDir);
    const home = await initDraft(dataDir, options);
    const directory = await openWithKey(home, keyFileOf(dataDir));
    try {
      const subnet = await chooseForAll(
        dataDir,
        settings.networkSubnet ?? "auto",
        Number.parseInt(home.id.slice(0, 6), 16),
      );
      const record = await withDraft(dataDir, () => claimCluster(directory, home, subnet));
      await withStore(dataDir, (store) => share(directory, firstRecords(store, home.host)));
      await publishDraft(dataDir);
      return joined(home, record);
    } catch (error) {
      throw await withStart(dataDir, home.directory, error);
    } finally {
      await directory.close();
    }
  });
}

/** Adds to the error of an etcd that does not answer how to start it, if it was this host that made its certificates. */
async function withStart(dataDir: string, place: DirectoryPlace, error: unknown): Promise<unknown> {
  if (!isHibernautError(error, "unavailable") || !("etcd" in place) || !(await areOurs(dataDir, place.tls)))
    return error;
  return new HibernautError(
    "unavailable",
    `${error.message}\nThe certificates for this etcd are in ${join(dataDir, ETCD_FOLDER)}. Copy the directory of each member to its server, and start the member there:\n\n${startText(dataDir, place.etcd)}\n\nThen run this command again.`,
    error.details,
    { cause: error },
  );
}

/**
 * Makes this host a member of the cluster that a join token is for. Rejects with `failed_precondition` while the platform
 * runs, when this host is in a cluster or has apps, and with what the cluster answers. Can be repeated with the same
 * token when it was cut short; before the host is a member, nothing of the cluster stays.
 */
export async function joinCluster(options: JoinOptions): Promise<Joined> {
  const { settings } = options;
  const token = readJoinToken(options.token);
  return offline(settings, async (dataDir) => {
    requireAlone(dataDir);
    await withStore(dataDir, requireEmpty);
    const name = options.name ?? suggestedName(hostname());
    requireHostName(name);
    const finished = await finishJoin(dataDir, name, token.authority);
    if (finished !== undefined) return finished;
    const { key } = makeKey();
    const { region } = settings;
    const publicKey = publicKeyOf(key);
    const { reply, address } = await askToJoin(token, {
      ...{ id: token.id, secret: token.secret, name, publicKey, version: options.version, region },
    });
    const place = placeFor(reply.directory, options);
    requireGuarded(place);
    const home: Home = {
      ...{ id: reply.clusterId, host: name, region: reply.region, directory: place, authority: reply.authority },
      peer: peerOf(options.peer, address),
      identity: { certificate: reply.certificate, key },
    };
    const secretsKey = Buffer.from(reply.secretsKey, "base64");
    const directory = await openDirectory(home, { secretsKey });
    try {
      const record = await requireCluster(directory, home);
      await writeDraft(dataDir, home, secretsKey);
      await withDraft(dataDir, () => claimMember(directory, home, token.id));
      return await settle(dataDir, home, record);
    } finally {
      await directory.close();
    }
  });
}

/** Where a host that joins finds the directory. What the others allowed, its own administrator has not. */
function placeFor(place: DirectoryPlace, { etcd, insecureEtcd }: JoinOptions): DirectoryPlace {
  if (!("etcd" in place)) return place;
  const { insecure: _theirs, ...rest } = place;
  return { ...rest, ...(etcd && { etcd }), ...(insecureEtcd === true && { insecure: true }) };
}

/** What claims reject with when this host has certainly not become a member. Of a lost answer, nobody knows what it was. */
const REFUSALS = ["already_exists", "failed_precondition", "unauthenticated"] as const;

/** Claims with a draft, which a refused host does not keep: it has keys of the cluster. */
async function withDraft<T>(dataDir: string, claim: () => Promise<T>): Promise<T> {
  try {
    return await claim();
  } catch (error) {
    if (REFUSALS.some((code) => isHibernautError(error, code))) await removeDraft(dataDir);
    throw error;
  }
}

/** Takes over what the cluster gave this host, which is a member by now. Can be repeated. */
async function settle(dataDir: string, home: Home, record: ClusterRecord): Promise<Joined> {
  await useSubnet(dataDir, record.subnet);
  await publishDraft(dataDir);
  return joined(home, record);
}

/**
 * Takes this host out of its cluster. Rejects with `failed_precondition` while the platform runs, and while the host owns
 * machines. With `forget`, only this host's own files are removed, without asking the directory: for a host that the
 * others have removed.
 */
export async function leaveCluster({
  settings,
  forget = false,
}: {
  settings: HostSettings;
  forget?: boolean;
}): Promise<Joined> {
  return offline(settings, async (dataDir) => {
    if (!isInCluster(dataDir))
      throw new HibernautError("failed_precondition", "This host is not in a cluster, so there is nothing to leave.");
    const home = await readHome(dataDir);
    if (!forget) {
      const directory = await openWithKey(home, keyFileOf(dataDir));
      try {
        await requireCluster(directory, home);
        const member = await requireMember(directory, home);
        await requireNoMachines(directory, home.host);
        const keys = [member.key, `${KEYS.hosts}${home.host}`];
        if ((await directory.transact([member], keys.map(deletion))) === undefined)
          throw new HibernautError("aborted", "This host's member record changed at the same time. Try again.");
      } finally {
        await directory.close();
      }
    }
    await removeHome(dataDir);
    return joined(home, { id: home.id, region: home.region });
  });
}

/** Opens a cluster's directory with the key in a file, which is made for a host that has none. */
function openWithKey(home: Home, keyFile: string): Promise<Directory> {
  return wiping(readKey(keyFile) ?? makeSecretsKey(keyFile), (secretsKey) => openDirectory(home, { secretsKey }));
}

/** Does work in a data directory that no platform uses. */
export async function offline<T>({ dataDir: path }: HostSettings, work: (dataDir: string) => Promise<T>): Promise<T> {
  const { dataDir, release } = await openDataDir(path);
  try {
    return await work(dataDir);
  } finally {
    release();
  }
}

async function withStore<T>(dataDir: string, work: (store: Store) => T): Promise<T> {
  const store = openStore(join(dataDir, "hibernaut.db"));
  try {
    return await work(store);
  } finally {
    store.close();
  }
}

function requireAlone(dataDir: string): void {
  if (isInCluster(dataDir))
    throw new HibernautError(
      "failed_precondition",
      "This host is in a cluster. Run `hibernaut cluster leave` first; `hibernaut cluster status` shows the cluster while the platform runs.",
    );
}

function requireEmpty(store: Store): void {
  const apps = store.apps.list().length;
  const webhooks = store.webhooks.list().length;
  if (apps === 0 && webhooks === 0) return;
  const what = [
    apps > 0 && `${apps} app${apps === 1 ? "" : "s"}`,
    webhooks > 0 && `${webhooks} webhook${webhooks === 1 ? "" : "s"}`,
  ];
  throw new HibernautError(
    "failed_precondition",
    `This host has ${what.filter(Boolean).join(" and ")}, which the cluster does not know. Only a host without apps and webhooks can join: destroy them, or make this host the first of a new cluster with \`hibernaut cluster init\` and let the others join it.`,
    { apps, webhooks },
  );
}

async function requireNoMachines(directory: Directory, host: string): Promise<void> {
  const { entries } = await directory.list(KEYS.machines);
  const own = entries.filter((entry) => ownerOf(entry).host === host);
  if (own.length === 0) return;
  throw new HibernautError(
    "failed_precondition",
    `Host ${host} has ${own.length} machine${own.length === 1 ? "" : "s"}. Start the platform, move them with \`hibernaut hosts drain ${host}\` or destroy them, and leave after that.`,
    { machines: own.length },
  );
}

/** The draft of a cluster that was to be made before, or a new one. */
async function initDraft(dataDir: string, options: InitOptions): Promise<Home> {
  const { settings, name = suggestedName(hostname()), peer } = options;
  requireHostName(name);
  const draft = await readDraft(dataDir);
  const before = draft && placeText(draft.directory) === placeText(options.directory) ? draft : undefined;
  const isSame = before?.host === name;
  const id = isSame ? before.id : randomBytes(8).toString("hex");
  const directory = await placeWithCertificates(dataDir, id, { ...options, before: before?.directory });
  if (isSame) {
    const home = { ...before, directory };
    await writeDraft(dataDir, home);
    return home;
  }
  const authority = await makeClusterAuthority(id);
  const { key, publicKey } = makeKey();
  const identity = { certificate: await signHost(authority, name, publicKey), key };
  const home = { id, host: name, region: settings.region, directory, peer: peerOf(peer), authority, identity };
  await writeDraft(dataDir, home);
  return home;
}

/** The directory, with certificates that are made for it if that is wanted: once, because etcd may have them by now. */
async function placeWithCertificates(
  dataDir: string,
  clusterId: string,
  { directory, etcdCertificates, before }: InitOptions & { before: DirectoryPlace | undefined },
): Promise<DirectoryPlace> {
  if (!("etcd" in directory) || etcdCertificates !== true) return directory;
  const known = before !== undefined && "etcd" in before ? before.tls : undefined;
  const tls = (await areOurs(dataDir, known))
    ? known
    : await makeEtcdCertificates(dataDir, { clusterId, urls: directory.etcd });
  return { ...directory, tls };
}

async function claimCluster(directory: Directory, home: Home, subnet: string | undefined): Promise<ClusterRecord> {
  const { id, region, host, authority } = home;
  const found = (await read<ClusterRecord>(directory, KEYS.cluster))?.value;
  if (found?.id === id) return found;
  const createdAt = new Date().toISOString();
  const record: ClusterRecord = { id, region, createdAt, authority: authority.certificate, subnet };
  const members = `${KEYS.members}${host}`;
  const absent = [KEYS.cluster, members].map((key) => ({ key, revision: 0 }));
  const changes = [put(KEYS.cluster, record), put(members, memberOf(home))];
  if (found === undefined && (await directory.transact(absent, changes)) !== undefined) return record;
  throw new HibernautError(
    "failed_precondition",
    `The ${placeText(home.directory)} has the data of cluster ${found?.id ?? "another host's making"}${found ? `, made at ${found.createdAt}` : ""}. Run \`hibernaut cluster token\` on one of its hosts and \`hibernaut cluster join\` here, or use another etcd.`,
    { found: found?.id ?? null },
  );
}

/** Uses the token up and becomes a member in one step, so that nobody joins by half or twice. */
async function claimMember(directory: Directory, home: Home, tokenId: string): Promise<void> {
  const key = `${KEYS.members}${home.host}`;
  const open = await directory.get(`${KEYS.joins}${tokenId}`);
  if ((await directory.get(key)) !== undefined) throw nameTaken(home.host);
  const changes = open && [deletion(open.key), put(key, memberOf(home))];
  if (changes && (await directory.transact([open, { key, revision: 0 }], changes)) !== undefined) return;
  throw new HibernautError(
    "unauthenticated",
    "The join token was used or expired at this moment. Make a new one with `hibernaut cluster token`.",
  );
}

/** Everything that the first host has and all hosts must know. Its machines stay its own. */
function firstRecords(store: Store, host: string): Map<string, object | string> {
  const records = new Map<string, object | string>(agreedRecords(store, host));
  for (const machine of store.machines.list()) {
    const { id, app, name, address } = machine;
    const owner: OwnerRecord = { app, name, host, epoch: 1, address };
    records.set(`${KEYS.machines}${id}`, owner);
    records.set(nameKey(owner), id);
    records.set(`${KEYS.addresses}${address}`, id);
    records.set(`${KEYS.configs}${id}`, configOf(machine));
  }
  return records;
}

async function share(directory: Directory, records: ReadonlyMap<string, object | string>): Promise<void> {
  let batch: Change[] = [];
  let bytes = 0;
  const write = async () => {
    if (batch.length > 0) await directory.transact([], batch);
    [batch, bytes] = [[], 0];
  };
  for (const [key, record] of records) {
    const value = JSON.stringify(record);
    if (batch.length === MOST_CHANGES || bytes + value.length > MOST_BYTES) await write();
    batch.push({ key, value });
    bytes += value.length;
  }
  await write();
}

/**
 * Finishes a join that was cut short after this host had become a member. Undefined when there was none.
 *
 * @param authority the fingerprint of the cluster's. A draft of another cluster is not of interest.
 */
async function finishJoin(dataDir: string, name: string, authority: string): Promise<Joined | undefined> {
  const draft = await readDraft(dataDir);
  if (draft?.host !== name || certificateHash(draft.authority.certificate) !== authority) return undefined;
  const directory = await openWithKey(draft, await draftKeyFile(dataDir));
  try {
    const record = await requireCluster(directory, draft);
    const member = await read<MemberRecord>(directory, `${KEYS.members}${name}`);
    if (member?.value.fingerprint === keyFingerprint(draft.identity.key)) return await settle(dataDir, draft, record);
    await removeDraft(dataDir);
    return undefined;
  } finally {
    await directory.close();
  }
}

function memberOf({ identity }: Home): MemberRecord {
  return { fingerprint: keyFingerprint(identity.key), joinedAt: new Date().toISOString() };
}

function joined({ host, directory }: Home, { id, region }: Pick<ClusterRecord, "id" | "region">): Joined {
  return { clusterId: id, host, region, directory: placeText(directory) };
}

/** @param seen the address at which a host of the cluster sees this one */
function peerOf(given: string | undefined, seen?: string): Home["peer"] {
  if (given === undefined) return { host: seen ?? firstAddress() };
  try {
    const { host, port } = splitAddress(given);
    return { host, port: port === 0 ? undefined : port };
  } catch {
    throw new HibernautError(
      "invalid_argument",
      `--peer ${given} is not an address. Write host:port, such as 10.0.0.5:4290, or a host.`,
    );
  }
}

/** The first address of this computer that others may reach; loopback when it has none. */
function firstAddress(): string {
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return all.find(({ internal, family }) => !internal && family === "IPv4")?.address ?? "127.0.0.1";
}
