/** Fetches what a set has of one app into a directory that is laid out like that of a platform. */
import { mkdir, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { guestSize } from "@hibernaut/domain/config";
import { HibernautError } from "@hibernaut/domain/errors";
import type { AppRecord, MachineRecord } from "@hibernaut/domain/machine";
import { volumesOf } from "@hibernaut/domain/mounts";
import { isVolumeId } from "@hibernaut/domain/naming";
import type { VolumeRecord } from "@hibernaut/domain/volume";
import type { FetchImage, ImageConfig } from "@hibernaut/images";
import { lackOfRoom } from "@hibernaut/lib/disk-files";
import type { Secrets } from "@hibernaut/secrets";
import type { Store } from "@hibernaut/store";
import { extractArchive, flushExtracted } from "../extract.ts";
import { appsOf, type Manifest, type StoredPiece } from "../targets/manifest.ts";
import type { Repository } from "../targets/repository.ts";
import { archiveOf } from "../targets/stored-archive.ts";
import { lasting } from "./rules.ts";

/** Left for guests that write, and for the database. */
const RESERVE_BYTES = 256 * 1024 * 1024;
const MB = 1024 * 1024;
const MACHINE_ID = /^[0-9a-f]{14}$/;
const ULID = /^[0-9A-Z]{26}$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;

/** An app as a set has it. */
export interface FetchedApp {
  record: AppRecord;
  machines: MachineRecord[];
  volumes: VolumeRecord[];
  /** The values of its secrets, by name. */
  secrets: Record<string, string>;
}

interface FetchOptions {
  repository: Pick<Repository, "read">;
  manifest: Manifest;
  app: string;
  /** Empty, for its owner alone. */
  folder: string;
  openStore(file: string): Pick<Store, "apps" | "machines" | "volumes" | "secrets" | "close">;
  openSecrets(parts: { store: Store["secrets"]; keyFile: string }): Pick<Secrets, "list" | "environment">;
}

/**
 * Fetches an app: its records, and the files of its machines and volumes, which are durable then. Each piece is compared with
 * the manifest. Rejects with `not_found` when the set does not have the app, and with `failed_precondition` when a piece is damaged.
 */
export async function fetchApp(options: FetchOptions, signal: AbortSignal): Promise<FetchedApp> {
  const { manifest, app, folder } = options;
  const { pieces, set } = manifest;
  const isRecord = ({ kind }: StoredPiece) => kind === "database" || kind === "files";
  await requireRoom(folder, sum(pieces.filter(isRecord).map(({ bytes }) => bytes)));
  await extract(options, isRecord, signal);
  const fetched = readRecords(options);
  if (fetched === undefined) {
    const apps = appsOf(manifest);
    const message = `The set ${set} has no app ${app}. It has ${apps.length === 0 ? "none with machines or volumes" : apps.join(", ")}.`;
    throw new HibernautError("not_found", message, { app_name: app });
  }
  requireShapes(app, fetched);
  const wanted = new Set([
    ...fetched.machines.map(({ id }) => `machine-${id}`),
    ...fetched.volumes.map(({ id }) => `volume-${id}`),
  ]);
  const here = (volume: string) => pieces.some((piece) => wanted.has(piece.name) && piece.volumes.includes(volume));
  const without = fetched.volumes.find(({ id }) => !here(id));
  if (without !== undefined)
    throw new HibernautError(
      "failed_precondition",
      `The set ${set} lacks the disk of volume ${without.id}. Use another.`,
    );
  const lacks = fetched.machines.find(({ id }) => !pieces.some(({ name }) => name === `machine-${id}`));
  if (lacks !== undefined)
    throw new HibernautError(
      "failed_precondition",
      `The set ${set} lacks the files of machine ${lacks.id}. Use another.`,
    );
  await requireRoom(folder, roomFor(pieces, wanted, fetched.machines));
  await extract(options, ({ name }) => wanted.has(name), signal);
  await flushExtracted(folder, signal);
  return fetched;
}

/** Where images come from. */
export type ImageSource = Pick<FetchOptions, "repository" | "manifest" | "folder">;

/** Returns what takes images out of a set. Pieces are read whole, so that one that is damaged is found. */
export function imageFrom(options: ImageSource): FetchImage {
  return async (digest, file, signal) => {
    const hex = digest.replace("sha256:", "");
    const pieces = options.manifest.pieces.filter(({ name }) => name === `image-${hex}`);
    if (pieces.length === 0) return undefined;
    for (const piece of pieces) await extractPiece(options, piece, signal);
    const folder = join(options.folder, "images", hex);
    const { config, ref } = JSON.parse(await readFile(join(folder, "image.json"), "utf8")) as {
      config: ImageConfig;
      ref?: string;
    };
    await rename(join(folder, "rootfs.squashfs"), file);
    return { config, ...(ref !== undefined && { ref }) };
  };
}

async function extract(options: FetchOptions, isWanted: (piece: StoredPiece) => boolean, signal: AbortSignal) {
  for (const piece of options.manifest.pieces) if (isWanted(piece)) await extractPiece(options, piece, signal);
}

async function extractPiece(
  { repository, folder }: Pick<FetchOptions, "repository" | "folder">,
  piece: StoredPiece,
  signal: AbortSignal,
): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await extractArchive(archiveOf(repository, piece, signal), folder, signal);
}

/** What a restore needs on the disk: the app's pieces, the largest image to compare, and each memory once more for its machine. */
function roomFor(pieces: readonly StoredPiece[], wanted: ReadonlySet<string>, machines: readonly MachineRecord[]) {
  const images = new Set(machines.map(({ imageDigest }) => `image-${imageDigest.replace("sha256:", "")}`));
  const bytes = (isWanted: (name: string) => boolean) =>
    pieces.filter(({ name }) => isWanted(name)).map((piece) => piece.bytes);
  const memories = machines.map(({ config, snapshot }) => (snapshot === null ? 0 : guestSize(config).memoryMb * MB));
  return sum(bytes((name) => wanted.has(name))) + sum(memories) + Math.max(0, ...bytes((name) => images.has(name)));
}

/** Rejects with `unavailable` unless the disk has room for that, before anything of it is there: guests write to it, too. */
async function requireRoom(folder: string, bytes: number): Promise<void> {
  const lack = await lackOfRoom(folder, bytes, { spare: RESERVE_BYTES });
  if (lack === undefined) return;
  const message = `The disk of ${folder} has ${lack.free} MB free, and the app needs ${lack.needed} MB while it is restored. Free some space first.`;
  throw new HibernautError("unavailable", message);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0);
}

/** Ids become parts of paths, and anyone who has the key of a repository can store any. */
function requireShapes(app: string, { machines, volumes }: FetchedApp): void {
  const isMachine = ({ id, app: of, imageDigest, snapshot }: MachineRecord) =>
    MACHINE_ID.test(id) &&
    of === app &&
    DIGEST.test(imageDigest) &&
    (snapshot === null || ULID.test(snapshot.generation));
  if (machines.every(isMachine) && volumes.every(({ id, app: of }) => isVolumeId(id) && of === app)) return;
  throw new HibernautError("failed_precondition", "The set has records that no platform writes. Use another set.");
}

/** Undefined when there is no such app. */
function readRecords({ app, folder, openStore, openSecrets }: FetchOptions): FetchedApp | undefined {
  const store = openStore(join(folder, "hibernaut.db"));
  try {
    const record = store.apps.get(app);
    if (record === undefined) return undefined;
    const all = store.machines.list(app);
    const machines = lasting(all);
    // What only a machine has that does not come back stays with it.
    const left = new Set(all.filter((one) => !machines.includes(one)).flatMap(volumesOf));
    const secrets = openSecrets({ store: store.secrets, keyFile: join(folder, "secrets.key") });
    return {
      record,
      machines,
      volumes: store.volumes.list(app).filter(({ id, state }) => state === "created" && !left.has(id)),
      secrets: secrets.list(app).length === 0 ? {} : secrets.environment(app),
    };
  } finally {
    store.close();
  }
}
