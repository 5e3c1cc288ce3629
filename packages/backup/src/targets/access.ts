/** How restic reaches a place: the environment and the options that follow from it. */
import { randomBytes } from "node:crypto";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import { ifAbsent } from "@hibernaut/lib/absence";
import { type Location, locationText, resticName } from "./location.ts";
import type { ResticAccess } from "./restic.ts";

/** What must stay secret about a target. */
export interface TargetSecrets {
  /** The password of the repository. */
  key: string;
  /** For S3. */
  accessKey?: string;
  secretKey?: string;
  /** For SFTP: the private key, in the form that OpenSSH reads. */
  sshKey?: string;
}

/** Where restic may write on this host. */
export interface ResticPlace {
  program: string;
  /** A directory for its cache and its temporary files. It may be deleted whenever restic does not run. */
  folder: string;
  /** The file of the SSH servers' host keys. A server's key is stored when it is first reached. */
  knownHosts: string;
}

/** restic prints its progress once in a while only: nobody reads it. Per second. */
const PROGRESS_FPS = "0.02";
/** How long `ssh` waits for an answer of the server, in seconds. */
const SSH_ALIVE_S = 30;

/** An access that can be used until it is disposed of. */
interface OpenAccess extends AsyncDisposable {
  access: ResticAccess;
}

/**
 * Opens the access to a place. Throws `invalid_argument` when the credentials are missing that it needs. The private key of SFTP
 * is in a file, readable by its owner alone, until the access is disposed of.
 */
export async function openAccess(location: Location, secrets: TargetSecrets, place: ResticPlace): Promise<OpenAccess> {
  requireCredentials(location, secrets);
  const { folder, program } = place;
  const temporary = join(folder, "tmp");
  await mkdir(temporary, { recursive: true, mode: 0o700 });
  const environment: Record<string, string> = {
    HOME: folder,
    TMPDIR: temporary,
    RESTIC_CACHE_DIR: join(folder, "cache"),
    RESTIC_REPOSITORY: resticName(location),
    RESTIC_PASSWORD: secrets.key,
    RESTIC_PROGRESS_FPS: PROGRESS_FPS,
  };
  const made: string[] = [];
  const options: string[] = [];
  let complaints: ResticAccess["complaints"];
  if (location.kind === "s3") {
    environment["AWS_ACCESS_KEY_ID"] = secrets.accessKey ?? "";
    environment["AWS_SECRET_ACCESS_KEY"] = secrets.secretKey ?? "";
    if (location.region !== undefined) environment["AWS_DEFAULT_REGION"] = location.region;
  }
  if (location.kind === "sftp") {
    const keyFile = join(temporary, `ssh-${randomBytes(8).toString("hex")}`);
    await writeFile(keyFile, `${(secrets.sshKey ?? "").trim()}\n`, { flag: "wx", mode: 0o600 });
    const logFile = `${keyFile}.log`;
    made.push(keyFile, logFile);
    options.push("-o", `sftp.command=${sshCommand(location, { keyFile, logFile, knownHosts: place.knownHosts })}`);
    complaints = () => readFile(logFile, "utf8").catch(ifAbsent(""));
  }
  return {
    access: { program, options, environment, place: locationText(location), ...(complaints && { complaints }) },
    async [Symbol.asyncDispose]() {
      for (const file of made) await rm(file, { force: true });
    },
  };
}

/** Throws `invalid_argument` when something is missing that a place needs, or is there that it does not know. */
export function requireCredentials({ kind }: Pick<Location, "kind">, secrets: Omit<TargetSecrets, "key">): void {
  const { accessKey, secretKey, sshKey } = secrets;
  if (kind === "s3" && !(accessKey && secretKey))
    throw missing("An S3 server needs an access key and a secret key", "access_key");
  if (kind === "sftp" && !sshKey) throw missing("An SFTP server needs a private key", "ssh_key");
  if (kind !== "s3" && (accessKey || secretKey))
    throw missing("Only S3 has an access key and a secret key", "access_key");
  if (kind !== "sftp" && sshKey) throw missing("Only SFTP has a private key", "ssh_key");
}

/** The command in whose place restic would start its own `ssh`. It reads nobody's configuration. */
function sshCommand(
  { user, host, port }: Extract<Location, { kind: "sftp" }>,
  { keyFile, logFile, knownHosts }: Record<"keyFile" | "logFile" | "knownHosts", string>,
): string {
  const settings = {
    BatchMode: "yes",
    IdentitiesOnly: "yes",
    IdentityAgent: "none",
    StrictHostKeyChecking: "accept-new",
    UserKnownHostsFile: quoted(knownHosts),
    GlobalKnownHostsFile: "/dev/null",
    ConnectTimeout: SSH_ALIVE_S,
    ServerAliveInterval: SSH_ALIVE_S,
  };
  const options = Object.entries(settings).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
  const words = [
    "ssh",
    "-F",
    "/dev/null",
    "-E",
    quoted(logFile),
    "-i",
    quoted(keyFile),
    "-p",
    port,
    "-l",
    user,
    ...options,
  ];
  return [...words, host.replace(/^\[|\]$/g, ""), "-s", "sftp"].join(" ");
}

/** restic splits the command like a shell, and `ssh` splits names of files once more. */
function quoted(path: string): string {
  if (/['"\\\p{Cc}]/u.test(path))
    throw new HibernautError(
      "failed_precondition",
      `SFTP cannot be used while the data directory has quotes in its path: ${path}`,
    );
  return /\s/.test(path) ? `'"${path}"'` : path;
}

function missing(what: string, field: string): HibernautError {
  return new HibernautError("invalid_argument", `${what}. See docs/backup.md.`, { field });
}
