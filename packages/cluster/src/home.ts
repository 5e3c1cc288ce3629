/** What a host keeps of its cluster in the data directory: who it is there, its keys, and where the directory is. */
import { mkdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import { isThere, isThereSync } from "@hibernaut/lib/absence";
import type { Pair } from "@hibernaut/lib/certificates";
import { flush, replaceFile } from "@hibernaut/lib/durable";
import type { Directory } from "./contract.ts";
import { CLUSTER_FOLDER } from "./keys.ts";
import { RecordSeal, SignedDirectory } from "./signed-directory.ts";

/** Written before the host is claimed in the directory. A claim that was cut short is found and finished with it. */
const DRAFT = "cluster.draft";
const PLACE = "cluster.json";
/** Of each {@link Pair} of a home. */
const FILES = {
  authority: { certificate: "authority.crt", key: "authority.key" },
  identity: { certificate: "host.crt", key: "host.key" },
} as const;
/** The key of the secrets, in the data directory. In a draft, that of the cluster to be joined. */
const SECRETS_KEY = "secrets.key";

/** Where a cluster's directory is. */
export type DirectoryPlace =
  | {
      etcd: string[];
      tls?: { ca?: string | undefined; cert?: string | undefined; key?: string | undefined } | undefined;
      /** An administrator allowed that everyone in the network can write to it. */
      insecure?: boolean | undefined;
    }
  /** An SQLite file, for hosts that share one disk, as in tests. */
  | { local: string };

/** Everything that a host has of its cluster. */
export interface Home {
  /** The cluster's id. */
  id: string;
  host: string;
  region: string;
  directory: DirectoryPlace;
  /** Where other hosts reach this one. Without a port: at the port where it listens. */
  peer: { host: string; port?: number | undefined };
  authority: Pair;
  identity: Pair;
}

export function isInCluster(dataDir: string): boolean {
  return isThereSync(join(dataDir, CLUSTER_FOLDER));
}

export function readHome(dataDir: string): Promise<Home> {
  return readFolder(join(dataDir, CLUSTER_FOLDER));
}

/** What a join or an init had prepared before it was cut short. */
export async function readDraft(dataDir: string): Promise<Home | undefined> {
  const folder = join(dataDir, DRAFT);
  if (!(await isThere(join(folder, PLACE)))) return undefined;
  return readFolder(folder);
}

/**
 * Stores what is not yet claimed in the directory.
 *
 * @param secretsKey the cluster's, which takes the place of the host's own when the draft is published: a host
 *   without apps and webhooks has nothing that its own key encrypts. Default: the host keeps its own.
 */
export async function writeDraft(dataDir: string, home: Home, secretsKey?: Buffer): Promise<void> {
  const folder = join(dataDir, DRAFT);
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { mode: 0o700 });
  for (const pair of ["authority", "identity"] as const)
    for (const part of ["certificate", "key"] as const) await write(folder, FILES[pair][part], home[pair][part]);
  if (secretsKey !== undefined) await write(folder, SECRETS_KEY, secretsKey);
  await writePlace(folder, home);
}

/** Stores where the directory is from now on. */
export async function replacePlace(dataDir: string, home: Home): Promise<void> {
  await writePlace(join(dataDir, CLUSTER_FOLDER), home);
}

function writePlace(folder: string, { authority: _signs, identity: _shows, ...place }: Home): Promise<void> {
  return write(folder, PLACE, `${JSON.stringify(place, null, 2)}\n`);
}

/** Makes the draft this host's place in its cluster. */
export async function publishDraft(dataDir: string): Promise<void> {
  const key = join(dataDir, DRAFT, SECRETS_KEY);
  // First, so that no host is in its cluster without it. It is not there any more when this was cut short.
  if (await isThere(key)) {
    await rename(key, keyFileOf(dataDir));
    await flush(dataDir);
  }
  await rename(join(dataDir, DRAFT), join(dataDir, CLUSTER_FOLDER));
  await flush(dataDir);
}

/** The file with the key of a draft's cluster, which was published when the draft has none. */
export async function draftKeyFile(dataDir: string): Promise<string> {
  const inDraft = join(dataDir, DRAFT, SECRETS_KEY);
  return (await isThere(inDraft)) ? inDraft : keyFileOf(dataDir);
}

/** The file with the key of the secrets. */
export function keyFileOf(dataDir: string): string {
  return join(dataDir, SECRETS_KEY);
}

export async function removeDraft(dataDir: string): Promise<void> {
  await rm(join(dataDir, DRAFT), { recursive: true, force: true });
}

export async function replaceCertificate(dataDir: string, certificate: string): Promise<void> {
  await write(join(dataDir, CLUSTER_FOLDER), FILES.identity.certificate, certificate);
}

/** Forgets the cluster. A crash leaves it whole, or gone. */
export async function removeHome(dataDir: string): Promise<void> {
  await removeDraft(dataDir);
  await rename(join(dataDir, CLUSTER_FOLDER), join(dataDir, DRAFT));
  await flush(dataDir);
  await removeDraft(dataDir);
}

interface OpenDirectoryOptions {
  /** Of the cluster: what is signed with another one is not there. The caller may wipe it at once. */
  secretsKey: Uint8Array;
  /** Is told of records that are not signed, once for each kind. */
  onForged?(key: string): void;
}

/** Opens the directory. Nothing is connected yet. */
export async function openDirectory(
  { id, directory: place }: Pick<Home, "id" | "directory">,
  { secretsKey, onForged }: OpenDirectoryOptions,
): Promise<Directory> {
  const seal = new RecordSeal(secretsKey, id);
  return new SignedDirectory({ directory: await openUnsigned(place), seal, onForged });
}

/** Opens the directory as it is, with records that nobody signed. */
export async function openUnsigned(place: DirectoryPlace): Promise<Directory> {
  if ("local" in place) {
    const { LocalDirectory } = await import("./local/directory.ts");
    return new LocalDirectory(place.local);
  }
  const { EtcdDirectory } = await import("./etcd/directory.ts");
  return new EtcdDirectory({ endpoints: place.etcd, tls: place.tls });
}

/** How people are told where a directory is. */
export function placeText(place: DirectoryPlace): string {
  return "local" in place ? place.local : `etcd at ${place.etcd.join(", ")}`;
}

async function readFolder(folder: string): Promise<Home> {
  try {
    const read = (name: string) => readFile(join(folder, name), "utf8");
    const readPair = async ({ certificate, key }: Pair) => ({
      certificate: await read(certificate),
      key: await read(key),
    });
    const place = JSON.parse(await read(PLACE)) as Omit<Home, "authority" | "identity">;
    return { ...place, authority: await readPair(FILES.authority), identity: await readPair(FILES.identity) };
  } catch (error) {
    throw new HibernautError(
      "failed_precondition",
      `What this host keeps of its cluster, ${folder}, cannot be read: ${(error as Error).message}. Put the directory back from a backup.`,
      { folder },
      { cause: error },
    );
  }
}

function write(folder: string, name: string, contents: string | Buffer): Promise<void> {
  return replaceFile(join(folder, name), contents, { mode: 0o600 });
}
