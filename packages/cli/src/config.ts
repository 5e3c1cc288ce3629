/** Finds the platform, the token and the app to use. */
import { accessSync, existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { given } from "@hibernaut/lib/given";
import { findAppFile } from "./appfile/find.ts";
import { CliError, UsageError } from "./failure.ts";

/** A file of the connection's TLS. */
export interface NamedFile {
  file: string;
  /** What names it, for errors. */
  from: string;
}

/** The files of the connection's TLS, those that are set. */
export interface TlsFiles {
  /** Authorities for the API's certificate. */
  ca?: NamedFile;
  /** What the CLI shows to an API that asks clients for a certificate. */
  cert?: NamedFile;
  key?: NamedFile;
}

interface Connection {
  apiUrl: string;
  token: string;
  tls: TlsFiles;
}

interface Saved {
  api_url?: string;
  api_token?: string;
  api_ca?: string;
  api_client_cert?: string;
  api_client_key?: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Where the platform that runs as a service keeps its address and its token. */
const SERVICE_FILE = "/var/lib/hibernaut/config.json";

/**
 * The environment first, then the file that the user's own `hibernaut serve` wrote, then that of the platform that runs
 * as a service. The token of a file is sent only to the address in the file: another address is another platform. The same
 * holds for its client certificate, which the environment replaces as a whole.
 */
export function findConnection(environment: Environment, serviceFile = SERVICE_FILE): Connection {
  const { apiUrl, token, tls, file } = findPlatform(environment, serviceFile);
  if (token) return { apiUrl, token, tls };
  throw new CliError(
    "unauthenticated",
    `No token for ${apiUrl}. Set HIBERNAUT_API_TOKEN; ${file} has no token for this address.`,
  );
}

/** The same, without a token where none is known. `file`: the configuration file that was looked at, if any. */
export function findPlatform(
  environment: Environment,
  serviceFile = SERVICE_FILE,
): Omit<Connection, "token"> & { token: string | undefined; file: string } {
  const { HIBERNAUT_API_URL: url, HIBERNAUT_API_TOKEN: token } = environment;
  if (url && token) return { apiUrl: url, token, tls: tlsFiles(environment), file: "" };
  const own = configFile(environment);
  const file = environment.HIBERNAUT_DATA_DIR || existsSync(own) || !isThere(serviceFile) ? own : serviceFile;
  const saved = readConfig(file);
  const apiUrl = url || saved?.api_url;
  if (!apiUrl) throw unknownPlatform(file);
  const known = saved?.api_url !== undefined && trimmed(saved.api_url) === trimmed(apiUrl) ? saved : undefined;
  return { apiUrl, token: token || known?.api_token, tls: tlsFiles(environment, known, file), file };
}

/** Paths in the file are relative to its directory. */
function tlsFiles(environment: Environment, saved: Saved = {}, file = ""): TlsFiles {
  const { HIBERNAUT_API_CA: ca, HIBERNAUT_API_CLIENT_CERT: cert, HIBERNAUT_API_CLIENT_KEY: key } = environment;
  const own = cert || key ? {} : saved;
  const named = (name: string, path: string | undefined, from: keyof Saved, other: string | undefined) => {
    if (path) return { file: path, from: name };
    return other ? { file: resolve(dirname(file), other), from: `${from} in ${file}` } : undefined;
  };
  const files = {
    ca: named("HIBERNAUT_API_CA", ca, "api_ca", saved.api_ca),
    cert: named("HIBERNAUT_API_CLIENT_CERT", cert, "api_client_cert", own.api_client_cert),
    key: named("HIBERNAUT_API_CLIENT_KEY", key, "api_client_key", own.api_client_key),
  };
  return given(files);
}

/** The nonce of the lease that whatever this command changes is changed under. Undefined without one. */
export function findLeaseNonce({ HIBERNAUT_LEASE_NONCE: nonce }: Environment): string | undefined {
  return nonce === "" ? undefined : nonce;
}

/** Whether {@link findApp} finds one. */
export function isAppNamed(option: string | undefined, environment: Environment, folder: string): boolean {
  return Boolean(option || environment.HIBERNAUT_APP || appOfProject(folder));
}

/** The app from `--app`, from `HIBERNAUT_APP`, or from the directory's app file, in this order. */
export function findApp(option: string | undefined, environment: Environment, folder: string): string {
  const app = option || environment.HIBERNAUT_APP || appOfProject(folder);
  if (app) return app;
  throw new UsageError('No app. Add --app <name>, set HIBERNAUT_APP, or write `app = "<name>"` in ./hibernaut.toml.');
}

/** The configuration file. HIBERNAUT_DATA_DIR may name one of several platforms on this host, which has its own file. */
export function configFile(environment: Environment): string {
  if (environment.HIBERNAUT_DATA_DIR) return join(environment.HIBERNAUT_DATA_DIR, "config.json");
  const home = environment.XDG_CONFIG_HOME || join(environment.HOME ?? homedir(), ".config");
  return join(home, "hibernaut/config.json");
}

/** The files in which tokens of platforms are that commands on this host work with. */
export function tokenFiles(environment: Environment): string[] {
  return [configFile(environment), SERVICE_FILE].flatMap((file) => [file, join(dirname(file), "admin-token")]);
}

/** Also if only the service's user may look at it. */
function isThere(file: string): boolean {
  try {
    accessSync(file);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EACCES";
  }
}

function readConfig(file: string): Saved | undefined {
  const content = read(file);
  if (content === undefined) return undefined;
  try {
    return JSON.parse(content) as Saved;
  } catch {
    throw new CliError(
      "failed_precondition",
      `${file} is not valid JSON. Fix it, or delete it and start the platform again.`,
    );
  }
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw new CliError(
      "permission_denied",
      `${file} cannot be read (${code}). It belongs to the user who runs the platform. Use sudo, or set HIBERNAUT_API_URL and HIBERNAUT_API_TOKEN.`,
    );
  }
}

/** The `app` key before the first table. Nothing else in the file matters here, and parsing TOML takes longer. */
function appOfProject(folder: string): string | undefined {
  const file = findAppFile(folder);
  const [top = ""] = ((file && read(file)) ?? "").split(/^\s*\[/m, 1);
  return /^\s*app\s*=\s*(["'])([^"'\n]+)\1\s*(?:#.*)?$/m.exec(top)?.[2];
}

function unknownPlatform(file: string): CliError {
  const message = `No platform found: ${file} does not exist. Start one with \`hibernaut serve\`, or set HIBERNAUT_API_URL and HIBERNAUT_API_TOKEN.`;
  return new CliError("unavailable", message);
}

function trimmed(url: string): string {
  return url.replace(/\/+$/, "");
}
