/** The first token: made at the first start and put where the command line looks for it. */
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { isFullAccess } from "@hibernaut/domain/scopes";
import { ifAbsent } from "@hibernaut/lib/absence";
import type { TokenStore } from "@hibernaut/store";
import { createToken, verifyToken } from "./tokens.ts";

/** What the command line reads: `config.json`. */
interface ClientConfig {
  api_url: string;
  api_token: string;
  /** Others, such as `api_client_cert`, are the user's. They stay. */
  [key: string]: unknown;
}

/** Whose token it is, and which files tell of it. */
interface AdminTokenOptions {
  tokens: TokenStore;
  dataDir: string;
  /** The command line's own file: `configFolder(env)/config.json`. */
  configFile: string;
  apiUrl: string;
}

/** Where the admin token is to be found. */
export interface AdminToken {
  token: string;
  /** Files that were written now. */
  written: string[];
  /** A sentence for the log when the command line's own file speaks of something else. */
  note?: string;
}

/**
 * Sees to it that a command line on this host can reach the platform. `<dataDir>/config.json` always
 * has the current address and a live admin token. The user's `config.json` is written when absent; when
 * it has a token of this platform only an address that an earlier start wrote is renewed; when it belongs to
 * another platform it stays untouched and the token goes to `<dataDir>/admin-token`.
 */
export function ensureAdminToken({ tokens, dataDir, configFile, apiUrl }: AdminTokenOptions): AdminToken {
  const ownFile = join(dataDir, "config.json");
  const own = readConfig(ownFile);
  const users = readConfig(configFile);
  const usersToken = liveToken(tokens, users);
  const token = fullToken(tokens, own) ?? fullToken(tokens, users) ?? createToken(tokens, "admin").token;
  const current = { api_url: apiUrl, api_token: token };
  const written: string[] = [];
  const keep = (file: string, content: string): void => {
    if (read(file) === content) return;
    writePrivately(file, content);
    written.push(file);
  };

  // A token that an earlier start wrote is renewed where it was written, also when it was rotated or revoked since.
  const ours = users?.api_token !== undefined && users.api_token === own?.api_token;
  const foreign = users !== undefined && usersToken === undefined && !ours;
  if (users === undefined) keep(configFile, text(current));
  else if (ours && users.api_token !== token) keep(configFile, text({ ...users, ...current }));
  else if (usersToken !== undefined && users.api_url === own?.api_url)
    keep(configFile, text({ ...users, api_url: apiUrl }));
  // Last, because it is what tells the next start which address this one wrote elsewhere.
  keep(ownFile, text({ ...own, ...current }));
  if (!foreign) return { token, written };
  const tokenFile = join(dataDir, "admin-token");
  keep(tokenFile, `${token}\n`);
  return {
    token,
    written,
    note: `${configFile} belongs to another platform and was left alone; the admin token of this one is in ${tokenFile}.`,
  };
}

/** The file's token, if it may do everything, without an end: one that was rotated is about to end. */
function fullToken(tokens: TokenStore, config: Partial<ClientConfig> | undefined): string | undefined {
  const token = liveToken(tokens, config);
  const record = token === undefined ? undefined : verifyToken(tokens, token);
  return record !== undefined && isFullAccess(record) && record.expiresAt === null ? token : undefined;
}

function liveToken(tokens: TokenStore, config: Partial<ClientConfig> | undefined): string | undefined {
  const token = config?.api_token;
  return typeof token === "string" && verifyToken(tokens, token) ? token : undefined;
}

/** Undefined when there is no such file; an empty object when it is not what it should be. */
function readConfig(file: string): Partial<ClientConfig> | undefined {
  const content = read(file);
  if (content === undefined) return undefined;
  try {
    const parsed: unknown = JSON.parse(content);
    return typeof parsed === "object" && parsed !== null ? parsed : {};
  } catch {
    return {};
  }
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    return ifAbsent(undefined)(error);
  }
}

function text(config: object): string {
  return `${JSON.stringify(config, null, 2)}\n`;
}

/** Whole or not at all, and never readable by others, not even for a moment. */
function writePrivately(file: string, content: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const temporary = `${file}.${process.pid}.tmp`;
  rmSync(temporary, { force: true });
  const handle = openSync(temporary, "wx", 0o600);
  try {
    writeSync(handle, content);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  renameSync(temporary, file);
}
