/** Builds a Dockerfile with docker or buildah, and brings the image into the layout of the directory's builds. */
import { existsSync, readFileSync } from "node:fs";
import { copyFile, mkdir, readdir, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { DOCKERFILES } from "../appfile/folder.ts";
import { CliError } from "../failure.ts";
import { ignoreOf, readContext, warnOfSize } from "./context.ts";
import {
  buildahArguments,
  chooseTool,
  type DockerfileBuild,
  dockerArguments,
  readSecret,
  registriesFile,
} from "./dockerfile-plan.ts";
import type { Job } from "./job.ts";
import { adopt, IMAGES_KEPT } from "./layout.ts";
import type { BuildRequest } from "./request.ts";
import { runTool } from "./run-tool.ts";

/** A daemon that is there answers at once; one that is not may be waited for. */
const PROBE_MS = 10_000;
const NAME = "hibernaut-build";
/** Steps of builds that buildah keeps for a directory: a few dozen versions of a Dockerfile. */
const MAX_STEPS = 200;
/** As root, buildah mounts its storage, and leaves the mount behind. In a namespace of its own it ends with the process. */
const BUILDAH: [string, ...string[]] = process.getuid?.() === 0 ? ["unshare", "--mount", "buildah"] : ["buildah"];

/** Builds it. Returns the image's reference and its digest. */
export async function buildDockerfile(job: Job, request: BuildRequest): Promise<{ image: string; digest: string }> {
  const { folder, place, report, signal } = job;
  const ignore = ignoreOf(folder.path, request.ignorefile, []);
  warnOfSize(report, (await readContext(folder.path, ignore, { signal })).bytes);
  const build: DockerfileBuild = {
    context: folder.path,
    file: dockerfileOf(job, request.dockerfile),
    name: `${NAME}-${basename(dirname(place.layout))}`,
    target: request.target,
    args: request.args,
    secrets: await secretFiles(request.secrets, place.work),
    ignorefile: request.ignorefile && join(folder.path, request.ignorefile),
    fresh: job.fresh,
  };
  const dockerAnswers = await answers("docker", ["version", "--format", "{{.Server.Version}}"], job);
  const tool = chooseTool({ dockerAnswers, buildah: dockerAnswers || (await answers("buildah", ["--version"], job)) });
  return tool === "docker" ? withDocker(job, build) : withBuildah(job, build);
}

async function withBuildah(job: Job, build: DockerfileBuild) {
  const { place, report, signal } = job;
  const { log, work } = place;
  const own = await storageOf(job);
  const run = (args: string[], what?: string) => {
    const [program, ...words] = [...BUILDAH, ...own, ...args];
    return runTool(program, words, { cwd: work, log, signal, ...(what && { what }) });
  };
  // What a build that was killed has left. The storage is this directory's alone, and no other build has it now.
  await run(["rm", "--all"]);
  await report.progress(
    "Building the Dockerfile with buildah",
    run(buildahArguments(build), "The build of the Dockerfile"),
  );
  const out = join(work, "image");
  await report.progress("Packing the image", run(["push", "--format", "oci", build.name, `oci:${out}:built`]));
  const steps = (await run(["images", "--all", "--quiet"])).split("\n").length;
  // All steps that are not part of the image go: the next build makes some of them again.
  if (steps > MAX_STEPS) await run(["rmi", "--prune"]);
  const { digest, tag } = await adopt(out, place.layout);
  return { image: `oci:${place.layout}:${tag}`, digest };
}

/** Where buildah keeps images and layers of this directory. Copies of whole layers where the kernel cannot stack them. */
async function storageOf(job: Job): Promise<string[]> {
  const home = join(dirname(job.place.layout), "buildah");
  await mkdir(home, { recursive: true });
  const places = (driver: string) => ["--root", join(home, driver), "--runroot", join(home, `${driver}-run`)];
  const stacked = [...places("overlay"), "--storage-driver", "overlay"];
  const [program, ...words] = [...BUILDAH, ...stacked, "info"];
  const works = await answers(program, words, job);
  const names = ["/etc/containers/registries.conf", join(homedir(), ".config/containers/registries.conf")];
  const text = registriesFile(names.filter((name) => existsSync(name)).map((name) => readFileSync(name, "utf8")));
  const registries = join(home, "registries.conf");
  if (text !== undefined) await writeFile(registries, text);
  return [
    ...(works ? stacked : [...places("vfs"), "--storage-driver", "vfs"]),
    ...(text === undefined ? [] : ["--registries-conf", registries]),
  ];
}

/** Docker keeps its layers itself. What machines run is an archive next to the layout, named after the image's ID. */
async function withDocker(job: Job, build: DockerfileBuild) {
  const { place, report, signal } = job;
  const options = { cwd: place.work, log: place.log, signal, env: { DOCKER_BUILDKIT: "1" } };
  const what = "The build of the Dockerfile";
  const given = build.ignorefile === undefined ? build : await withIgnoreFile(build, build.ignorefile, place.work);
  const idFile = join(place.work, "id");
  const [first = "", ...rest] = dockerArguments(given);
  const args = [first, "--iidfile", idFile, ...rest];
  await report.progress("Building the Dockerfile with docker", runTool("docker", args, { ...options, what }));
  const digest = readFileSync(idFile, "utf8").trim();
  const archives = join(dirname(place.layout), "archives");
  const archive = join(archives, `${digest.replace(/^sha256:/, "").slice(0, 12)}.tar`);
  await mkdir(archives, { recursive: true });
  if (!existsSync(archive)) {
    const draft = join(place.work, "image.tar");
    await report.progress("Packing the image", runTool("docker", ["save", "--output", draft, build.name], options));
    await rename(draft, archive);
  }
  await utimes(archive, new Date(), new Date());
  await keepNewest(archives);
  return { image: `docker-archive:${archive}`, digest };
}

/** Docker reads the rules of a Dockerfile from a file next to it, and takes a Dockerfile from anywhere. */
async function withIgnoreFile(build: DockerfileBuild, ignorefile: string, work: string): Promise<DockerfileBuild> {
  const file = join(work, "Dockerfile");
  await copyFile(build.file, file);
  await copyFile(ignorefile, `${file}.dockerignore`);
  return { ...build, file };
}

async function keepNewest(folder: string): Promise<void> {
  const files = (await readdir(folder)).map((name) => join(folder, name));
  const dated = await Promise.all(files.map(async (file) => ({ file, at: (await stat(file)).mtimeMs })));
  for (const { file } of dated.toSorted((a, b) => b.at - a.at).slice(IMAGES_KEPT)) await rm(file);
}

function dockerfileOf({ folder }: Job, wanted: string | undefined): string {
  const name = wanted ?? DOCKERFILES.find((one) => folder.entries.includes(one)) ?? "Dockerfile";
  const file = resolve(folder.path, name);
  if (existsSync(file)) return file;
  throw new CliError(
    "not_found",
    `${file} does not exist. Correct dockerfile under [build] in the app file, or name one with --dockerfile; paths are relative to the directory of the app file.`,
  );
}

/** Files with the secrets, which only this user can read and which are gone after the build. */
async function secretFiles(texts: readonly string[], work: string): Promise<Record<string, string>> {
  const files: Record<string, string> = {};
  for (const secret of texts.map(readSecret).filter((one) => one !== undefined)) {
    if ("file" in secret) {
      files[secret.id] = resolve(secret.file);
      if (!existsSync(secret.file))
        throw new CliError(
          "not_found",
          `The file ${secret.file} of the build secret ${secret.id} does not exist. Correct --build-secret.`,
        );
      continue;
    }
    const value = process.env[secret.variable];
    if (value === undefined)
      throw new CliError(
        "not_found",
        `The variable ${secret.variable} of the build secret ${secret.id} is not set. Set it, or use src=<file>.`,
      );
    files[secret.id] = join(work, `secret-${secret.id}`);
    await writeFile(join(work, `secret-${secret.id}`), value, { mode: 0o600 });
  }
  return files;
}

/** Whether the program is there and can do its work now. */
async function answers(program: string, args: string[], { place, signal }: Job): Promise<boolean> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(PROBE_MS)]);
  try {
    await runTool(program, args, { cwd: place.work, log: place.log, signal: limit });
    return true;
  } catch {
    signal.throwIfAborted();
    return false; // the log says why
  }
}
