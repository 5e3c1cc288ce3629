/** Which program builds a Dockerfile, and with which arguments. Pure. */
import { CliError } from "../failure.ts";

type ImageTool = "docker" | "buildah";

/** A build, in the same terms for both programs. Paths are absolute. */
export interface DockerfileBuild {
  context: string;
  file: string;
  /** The name that the program gives to the image. */
  name: string;
  target: string | undefined;
  args: Record<string, string>;
  /** Files with secrets, by their names. */
  secrets: Record<string, string>;
  ignorefile: string | undefined;
  fresh: boolean;
}

/** Docker if its daemon answers, because it has the user's images and settings; otherwise buildah. */
export function chooseTool({ dockerAnswers, buildah }: { dockerAnswers: boolean; buildah: boolean }): ImageTool {
  if (dockerAnswers) return "docker";
  if (buildah) return "buildah";
  throw new CliError(
    "build_tool_missing",
    "Building a Dockerfile needs buildah, or docker with a running daemon. Install one of them, for example with `apt-get install buildah`, and deploy again; or build elsewhere and use --image.",
  );
}

export function dockerArguments(build: DockerfileBuild): string[] {
  return [
    "build",
    "--platform",
    "linux/amd64",
    "--progress",
    "plain",
    ...common(build),
    "--tag",
    build.name,
    build.context,
  ];
}

/** Arguments of `buildah`, after those that name its storage. */
export function buildahArguments(build: DockerfileBuild): string[] {
  return [
    "bud",
    // Commands run in a chroot: this needs no runtime for containers, and no rights that a container would not give.
    ...["--isolation", "chroot", "--layers", "--format", "oci"],
    // The same files give the same digest.
    ...["--timestamp", "0"],
    ...(build.ignorefile === undefined ? [] : ["--ignorefile", build.ignorefile]),
    ...common(build),
    ...["--tag", build.name, build.context],
  ];
}

function common({ file, target, args, secrets, fresh }: DockerfileBuild): string[] {
  return [
    ...["--file", file],
    ...(target === undefined ? [] : ["--target", target]),
    ...Object.entries(args).flatMap(([name, value]) => ["--build-arg", `${name}=${value}`]),
    ...Object.entries(secrets).flatMap(([id, path]) => ["--secret", `id=${id},src=${path}`]),
    ...(fresh ? ["--no-cache"] : []),
  ];
}

type SecretSource = { id: string; file: string } | { id: string; variable: string };

/** Reads `id=npm,src=token.txt` or `id=npm,env=TOKEN`; undefined for anything else. */
export function readSecret(text: string): SecretSource | undefined {
  const [, id = "", kind, value = ""] = /^id=([\w.-]+),(src|source|env)=(.+)$/.exec(text) ?? [];
  if (kind === undefined) return undefined;
  return kind === "env" ? { id, variable: value } : { id, file: value };
}

/** Short names such as `node:24` mean Docker Hub, as everywhere, unless the host has its own rule. */
export function registriesFile(hostFiles: readonly string[]): string | undefined {
  if (hostFiles.some((text) => /^\s*unqualified-search-registries\s*=/m.test(text))) return undefined;
  return 'unqualified-search-registries = ["docker.io"]\n';
}
