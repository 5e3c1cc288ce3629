/** Fetches what a set has of one app into a directory that is laid out like that of a platform. */
import { mkdir, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import type { AppRecord, MachineRecord } from "@hibernaut/domain/machine";
import type { VolumeRecord } from "@hibernaut/domain/volume";
import type { FetchImage, ImageConfig } from "@hibernaut/images";
import type { Secrets } from "@hibernaut/secrets";
import type { Store } from "@hibernaut/store";
import { extractArchive, flushExtracted } from "../extract.ts";
import { appsOf, type Manifest, type StoredPiece } from "../targets/manifest.ts";
import { compared, type Repository } from "../targets/repository.ts";
import { fileOf } from "../targets/set-writer.ts";
import { lasting } from "./rules.ts";

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
  await extract(options, (piece) => piece.kind === "database" || piece.kind === "files", signal);
  const fetched = readRecords(options);
  if (fetched === undefined) {
    const apps = appsOf(manifest);
    const message = `The set ${set} has no app ${app}. It has ${apps.length === 0 ? "none with machines or volumes" : apps.join(", ")}.`;
    throw new HibernautError("not_found", message, { app_name: app });
  }
  const wanted = new Set([
    ...fetched.machines.map(({ id }) => `machine-${id}`),
    ...fetched.volumes.map(({ id }) => `volume-${id}`),
  ]);
  const lacks = fetched.machines.find(({ id }) => !pieces.some(({ name }) => name === `machine-${id}`));
  if (lacks !== undefined)
    throw new HibernautError(
      "failed_precondition",
      `The set ${set} lacks the files of machine ${lacks.id}. Use another.`,
    );
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
  const file = fileOf(piece);
  await extractArchive(compared(repository.read(piece.snapshot, file, signal), { ...piece, file }), folder, signal);
}

/** Undefined when there is no such app. */
function readRecords({ app, folder, openStore, openSecrets }: FetchOptions): FetchedApp | undefined {
  const store = openStore(join(folder, "hibernaut.db"));
  try {
    const record = store.apps.get(app);
    if (record === undefined) return undefined;
    const secrets = openSecrets({ store: store.secrets, keyFile: join(folder, "secrets.key") });
    return {
      record,
      machines: lasting(store.machines.list(app)),
      volumes: store.volumes.list(app).filter(({ state }) => state === "created"),
      secrets: secrets.list(app).length === 0 ? {} : secrets.environment(app),
    };
  } finally {
    store.close();
  }
}
