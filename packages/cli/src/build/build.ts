/** Builds the image of a directory. */
import { lookAt } from "../appfile/folder.ts";
import { CliError } from "../failure.ts";
import { interruptible } from "../interrupting.ts";
import { ignoreOf } from "./context.ts";
import { type Builder, chooseBuilder } from "./detect.ts";
import type { Job, Made, Report } from "./job.ts";
import { IMAGES_KEPT, publish } from "./layout.ts";
import { buildFolder, openPlace } from "./place.ts";
import type { BuildRequest } from "./request.ts";

export interface Built {
  /** For machines: `oci:<path>:<name>`. */
  image: string;
  digest: string;
  builder: Builder;
}

/**
 * Builds the image. What is made is kept below `builds`. The same directory gives the same digest. Rejects with `build_unknown`, `build_tool_missing`,
 * `build_too_large`, `build_failed`, or `deadline_exceeded`; none of them changes an earlier image.
 */
export async function buildImage(
  request: BuildRequest,
  report: Report,
  builds = buildFolder(process.env),
): Promise<Built> {
  try {
    return await built(request, report, builds);
  } catch (error) {
    throw explained(error, builds);
  }
}

async function built(request: BuildRequest, report: Report, builds: string): Promise<Built> {
  const folder = lookAt(request.directory, undefined);
  const builder = chooseBuilder(folder, request.dockerfile === undefined ? request.builder : "dockerfile");
  await using place = await openPlace(request.directory, builds);
  using limit = limited(request.timeout);
  const ignore = ignoreOf(request.directory, request.ignorefile);
  const { signal } = limit;
  const { port, commandNamed, fresh } = request;
  const job: Job = { folder, place, ignore, port, commandNamed, fresh, report, signal };
  if (builder === "dockerfile") {
    const { buildDockerfile } = await import("./dockerfile.ts");
    return { ...(await buildDockerfile(job, request)), builder };
  }
  const { layers, settings } = await MAKE[builder](job);
  const { digest, tag } = await publish(place.layout, layers, { settings, keep: IMAGES_KEPT });
  return { image: `oci:${place.layout}:${tag}`, digest, builder };
}

/** Loads only the builder that is needed. */
const MAKE: Record<Exclude<Builder, "dockerfile">, (job: Job) => Promise<Made>> = {
  node: async (job) => (await import("./node.ts")).buildNode(job),
  static: async (job) => (await import("./static.ts")).buildStatic(job),
  python: async (job) => (await import("./python.ts")).buildPython(job),
  go: async (job) => (await import("./go.ts")).buildGo(job),
};

/** The error that users see for one of the disk; any other error as it is. `builds` is the directory for builds. */
export function explained(error: unknown, builds: string): unknown {
  const { code, path: what = builds } = error as NodeJS.ErrnoException;
  if (code === "ENOSPC" || code === "EDQUOT")
    return new CliError(
      "resource_exhausted",
      `There is no room for the build in ${builds}. Free some, or set HIBERNAUT_BUILD_DIR to a directory on another disk.`,
    );
  if ((code === "EACCES" || code === "EPERM" || code === "EROFS") && what.startsWith(builds))
    return new CliError(
      "permission_denied",
      `${what} cannot be written (${code}). Set HIBERNAUT_BUILD_DIR to a directory that belongs to you.`,
    );
  if (code === "EACCES" || code === "EPERM")
    return new CliError(
      "permission_denied",
      `${what} cannot be read (${code}). Make it readable, or list it in .dockerignore if the app does not need it.`,
    );
  return error;
}

/** A signal that is aborted by Ctrl-C, SIGTERM, and when the time is over. */
function limited(seconds: number): { signal: AbortSignal } & Disposable {
  const stop = interruptible("The build was interrupted.");
  const late = new CliError(
    "deadline_exceeded",
    `The build took longer than ${seconds} seconds and was ended. Allow more time with --build-timeout.`,
  );
  const timer = setTimeout(() => stop.abort(late), seconds * 1000);
  return {
    signal: stop.signal,
    [Symbol.dispose]() {
      clearTimeout(timer);
      stop[Symbol.dispose]();
    },
  };
}
