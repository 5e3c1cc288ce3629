/** Copies files and directories between this computer and a machine, by the rules of `docker cp`. */
import { lstat, realpath, stat } from "node:fs/promises";
import { basename, posix, resolve } from "node:path";
import type { Readable, Transform } from "node:stream";
import { ApiError } from "../error.ts";
import type { CallOptions } from "../transport.ts";
import type { MachinePath, UnpackedArchive } from "../types.ts";
import { CopyError } from "./copy-error.ts";
import { pack } from "./pack.ts";
import { planCopy, type Source, type Target } from "./plan.ts";
import { unpack } from "./unpack.ts";

/** What of a client a copy needs. */
export interface CopyClient {
  getMachinePath(app: string, id: string, path: string, options?: CallOptions): Promise<MachinePath>;
  readArchive(app: string, id: string, path: string, options?: CallOptions): Promise<Readable>;
  writeArchive(
    app: string,
    id: string,
    path: string,
    archive: Readable,
    options?: CallOptions & { owner?: "image" | "archive" },
  ): Promise<UnpackedArchive>;
}

/** How to copy. */
export interface CopyOptions extends CallOptions {
  /** Keep owners and all permissions; on this computer, this takes root. Default: false. */
  archive?: boolean;
  /** All bytes pass through it, so that it can count them. */
  through?: Transform;
  /** Called with the path of each device, pipe and socket, which are left out. */
  onSkipped?(path: string): void;
}

/** What was copied, and where it is: on this computer, an absolute path. */
export interface Copied extends UnpackedArchive {
  target: string;
}

type Of = readonly [app: string, id: string];

/** Copies a file or directory of this computer into a running machine. Rejects with a {@link CopyError} before anything is sent. */
export async function copyIn(
  client: CopyClient,
  of: Of,
  [here, there]: readonly [here: string, there: string],
  { archive = false, through, onSkipped = () => {}, ...call }: CopyOptions = {},
): Promise<Copied> {
  const plan = planCopy(await sourceHere(here), await targetThere(client, of, there, call));
  const source = pack(here, plan.name, onSkipped);
  try {
    const body = passed(source, through);
    const owner = archive ? "archive" : "image";
    const copied = await client.writeArchive(...of, plan.directory, body, { ...call, owner });
    return { target: plan.name === undefined ? plan.directory : posix.join(plan.directory, plan.name), ...copied };
  } finally {
    source.destroy();
  }
}

/** Copies a file or directory of a running machine to this computer. Nothing is written outside the target. */
export async function copyOut(
  client: CopyClient,
  of: Of,
  [there, here]: readonly [there: string, here: string],
  { archive = false, through, ...call }: CopyOptions = {},
): Promise<Copied> {
  const plan = planCopy(await sourceThere(client, of, there, call), await targetHere(here));
  const whole = await client.readArchive(...of, there, call);
  try {
    const copied = await unpack(passed(whole, through), { ...plan, archive });
    return { target: resolve(plan.directory, plan.name ?? "."), ...copied };
  } finally {
    whole.destroy();
  }
}

/** Sends a stream through another one, and its error, too. */
export function passed(source: Readable, through: Transform | undefined): Readable {
  if (through === undefined) return source;
  source.on("error", (error) => through.destroy(error));
  return source.pipe(through);
}

async function sourceHere(path: string): Promise<Source> {
  const found = await lstat(path).catch(missing);
  if (found === undefined) throw new CopyError(`${path} does not exist. Check the path.`);
  return { path, directory: found.isDirectory(), base: basename(resolve(path)) };
}

async function targetHere(path: string): Promise<Target> {
  const found = await stat(path).catch(missing);
  if (found === undefined) return { path, kind: undefined };
  const kind = found.isDirectory() ? "directory" : found.isFile() ? "file" : "other";
  return { path, kind, real: await realpath(path) };
}

async function sourceThere(client: CopyClient, of: Of, path: string, options: CallOptions): Promise<Source> {
  const { kind } = await client.getMachinePath(...of, path, options);
  return { path, directory: kind === "directory", base: posix.basename(posix.resolve(path)) };
}

async function targetThere(client: CopyClient, of: Of, path: string, options: CallOptions): Promise<Target> {
  const found = await client.getMachinePath(...of, path, options).catch((error: unknown): MachinePath | undefined => {
    if (error instanceof ApiError && error.code === "not_found") return undefined;
    throw error;
  });
  if (found === undefined) return { path, kind: undefined };
  // A link that leads nowhere is replaced by the copy.
  if (found.leads_to === null) return { path, kind: "file", real: path };
  const kind = found.leads_to === "directory" || found.leads_to === "file" ? found.leads_to : "other";
  return { path, kind, real: found.path };
}

function missing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}
