/** Builds the image of a directory. */
import { lookAt } from "../appfile/folder.ts";
import type { Build } from "../appfile/model.ts";
import { CliError } from "../failure.ts";
import { interruptible } from "../interrupting.ts";
import { ignoreOf } from "./context.ts";
import { type Builder, chooseBuilder } from "./detect.ts";
import { explained } from "./disk-errors.ts";
import type { Job, Made, Report } from "./job.ts";
import { publish } from "./layout.ts";
import { buildFolder, openPlace } from "./place.ts";

/** Images of a directory that are kept: the last few, to roll back to. */
export const IMAGES_KEPT = 5;

/** What to build. */
export interface BuildRequest extends Build {
  /** Absolute. */
  directory: string;
  /** The port that the app should listen on; the image sets PORT. */
  port: number;
  /** For a Dockerfile: `id=<name>,src=<file>` or `id=<name>,env=<variable>`. */
  secrets: string[];
  /** Whether to make everything again. */
  fresh: boolean;
  /** Seconds. */
  timeout: number;
}

/** A finished image. */
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
  const job: Job = { folder, place, ignore, port: request.port, fresh: request.fresh, report, signal };
  if (builder === "dockerfile") {
    const { buildDockerfile } = await import("./dockerfile.ts");
    return { ...(await buildDockerfile(job, { ...request, keep: IMAGES_KEPT })), builder };
  }
  const { layers, settings } = await madeBy(builder, job);
  const { digest, tag } = await publish(place.layout, layers, { settings, keep: IMAGES_KEPT });
  return { image: `oci:${place.layout}:${tag}`, digest, builder };
}

async function madeBy(builder: Exclude<Builder, "dockerfile">, job: Job): Promise<Made> {
  switch (builder) {
    case "node": {
      const { buildNode } = await import("./node.ts");
      return buildNode(job);
    }
    case "static": {
      const { buildStatic } = await import("./static.ts");
      return buildStatic(job);
    }
    case "python": {
      const { buildPython } = await import("./python.ts");
      return buildPython(job);
    }
    case "go": {
      const { buildGo } = await import("./go.ts");
      return buildGo(job);
    }
  }
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
