/** Makes a root file system of an image's layers, by a program of its own, in a jail where there is one. */
import { chmod, readFile, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Confine, Confined, ConfinedTask } from "@hibernaut/domain/confined";
import { IMAGE_UNPACKER } from "@hibernaut/settings/places";
import type { LimitFunction } from "p-limit";
import type { ImageConfig, ImageProgress } from "./contract.ts";
import { type FlattenOrder, PACKING, REFUSED } from "./flatten/order.ts";
import { damaged, Refusal, type RefusalKind } from "./flatten/refusal.ts";
import { descriptorDigest, diffIdsOf, digestOf, layerDigests, parseObject, readImageConfig } from "./manifest.ts";
import type { Room } from "./room.ts";
import type { Job } from "./shared.ts";
import { runTool, ToolFailure } from "./tools.ts";

/** What an image may have, and how it is unpacked. */
export interface Unpacking extends Room {
  /** How many files, directories and other entries the layers of an image may have together. */
  imageEntries: number;
  /** Lets a few images be unpacked at a time; others wait. */
  turns: LimitFunction;
  /** Without it, the program has the rights of the platform. */
  confine?: Confine | undefined;
}

/** The parts of an image on the disk. */
export interface ImageParts {
  /** The directory of all blobs. */
  folder: string;
  manifest: string;
  /** Where the blob of a digest is. */
  blob(digest: string): string;
}

interface UnpackWork {
  ref: string;
  parts: ImageParts;
  /** A private directory. */
  folder: string;
  /** The file to make. */
  out: string;
  packer: string;
  unpacking: Unpacking;
  job: Job<ImageProgress>;
}

/** Enough for 16 GB on a slow disk, at 10 MB/s. */
const TIMEOUT_MS = 30 * 60_000;
/** Uncompressed data makes the fastest cold start. By default, it takes a quarter of the host's memory, which machines need. */
const OPTIONS = ["-noD", "-noF", "-noI", "-noX", "-mem", "256M", "-no-progress", "-quiet", "-exit-on-error", "-force"];
/** The directory in the import's where the jail's root is. */
export const JAIL = "jail";
/** Names of a large image take a third of this. */
const NODE_OPTIONS = ["--max-old-space-size=1536"];
/** What a file system needs for each entry in addition to its content, at most. */
const ENTRY_BYTES = 2048;

/** Makes the file, and returns how to start the image. Rejects with a Refusal or a ToolFailure. */
export async function unpackImage(work: UnpackWork): Promise<ImageConfig> {
  const { ref, parts, out, packer, unpacking } = work;
  const manifest = parseObject(parts.manifest, ref, "manifest");
  const configDigest = descriptorDigest(manifest.config, ref);
  const text = await readFile(parts.blob(configDigest), "utf8");
  if (digestOf(text) !== configDigest) throw damaged("its configuration does not match its digest");
  const config = readImageConfig(text, ref);
  const diffIds = diffIdsOf(text, ref);
  const digests = layerDigests(manifest, ref);
  // The digests in the configuration are what the content of each layer is checked with.
  if (diffIds.length !== digests.length) throw damaged("its configuration and its manifest have different layers");
  const layers = digests.map((digest, at) => ({ path: parts.blob(digest), diffId: diffIds[at] ?? "" }));
  await writeFile(out, "", { mode: 0o644 });
  const { imageBytes, imageEntries, reserveBytes } = unpacking;
  const limits = { bytes: imageBytes, entries: imageEntries };
  const order: FlattenOrder = { layers, limits, reserveBytes, pack: [packer, ...OPTIONS], out };
  await unpacking.turns(() => run(work, order));
  return config;
}

async function run(work: UnpackWork, order: FlattenOrder): Promise<void> {
  const { job } = work;
  job.signal.throwIfAborted();
  job.report({ step: "unpack" });
  const confined = await confine(work, order);
  try {
    await runTool(confined.program, confined.args, {
      cwd: work.folder,
      timeoutMs: TIMEOUT_MS,
      signal: job.signal,
      onOutput: (said) => said.includes(PACKING) && job.report({ step: "pack" }),
    });
  } catch (error) {
    throw refusalIn(error) ?? error;
  } finally {
    await confined.end();
  }
}

async function confine({ folder, parts, out, packer, unpacking }: UnpackWork, order: FlattenOrder): Promise<Confined> {
  const args = [...NODE_OPTIONS, IMAGE_UNPACKER.program, JSON.stringify(order)];
  const program = process.execPath;
  if (unpacking.confine === undefined) return { program, args, end: async () => {} };
  // The directories above them keep others away.
  await chmod(parts.folder, 0o755);
  await Promise.all(order.layers.map(({ path }) => chmod(path, 0o644)));
  const task: ConfinedTask = {
    name: `image-${basename(folder)}`,
    folder: join(folder, JAIL),
    program,
    args,
    read: [...IMAGE_UNPACKER.files, ...(packer.startsWith("/") ? [packer] : []), parts.folder],
    write: [out],
    fileBytes: order.limits.bytes + order.limits.entries * ENTRY_BYTES,
  };
  return unpacking.confine(task);
}

function refusalIn(error: unknown): Refusal | undefined {
  if (!(error instanceof ToolFailure) || error.code !== REFUSED) return undefined;
  const said = error.stderr.trim().split("\n").at(-1) ?? "";
  const { kind, reason } = JSON.parse(said) as { kind: RefusalKind; reason: string };
  return new Refusal(kind, reason);
}
