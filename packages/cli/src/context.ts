/** The context that a command runs in. */
import type { ClientCertificate, HibernautClient } from "@hibernaut/client";
import { previewAppName } from "@hibernaut/domain/preview";
import { findApp, findConnection, findLeaseNonce, findPlatform, isAppNamed, type TlsFiles } from "./config.ts";
import { UsageError } from "./failure.ts";
import { showProgress, style } from "./terminal.ts";
import { shown } from "./visible.ts";

/** Options of every command, or of every command about an app. */
export interface GlobalOptions {
  json?: boolean;
  app?: string;
  /** How many words follow `--`; absent without `--`. */
  afterDashes?: number | undefined;
  /** What this is about, if several things are done at once: lines of progress begin with it. */
  about?: string;
}

/** The platform, the app and the terminal of one command. */
export class Context {
  readonly json: boolean;
  readonly afterDashes: number | undefined;
  readonly #app: string | undefined;
  readonly #about: string | undefined;
  /** The only app of the platform, if nothing names one. */
  #onlyApp: string | undefined;
  #client: HibernautClient | undefined;

  constructor(options: GlobalOptions) {
    this.json = options.json ?? false;
    this.afterDashes = options.afterDashes;
    this.#app = options.app;
    this.#about = options.about;
  }

  /** The app to use. Throws a usage error when nothing names one. */
  get app(): string {
    return this.#onlyApp ?? findApp(this.#app, process.env, process.cwd());
  }

  /**
   * Looks for the app if nothing names one: if the platform has only one, that is meant. Throws a usage error that lists
   * them if there are several, and one that says what to do if there are none.
   */
  async findOnlyApp(): Promise<void> {
    if (isAppNamed(this.#app, process.env, process.cwd())) return;
    const all = await (await this.client()).listApps();
    // Previews come and go, and a command that named no app before still needs none.
    const own = all.filter(({ preview }) => preview === undefined);
    const apps = (own.length > 0 ? own : all).map(({ name }) => name);
    if (apps.length > 1) throw new UsageError(`Which app? Add --app with one of: ${shortList(apps)}.`);
    if (apps.length === 0)
      throw new UsageError("No app. The platform has none yet: create one with `hibernaut apps create <name>`.");
    [this.#onlyApp] = apps;
  }

  /** The app given with `--app`, if any. For commands that are about all apps otherwise. */
  get namedApp(): string | undefined {
    return this.#app;
  }

  /** The same context for another app, unless `--app` or HIBERNAUT_APP names one. */
  preferring(app: string | undefined): Context {
    if (app === undefined || this.#app !== undefined || process.env.HIBERNAUT_APP) return this;
    return new Context({ json: this.json, app });
  }

  /** The same context for the app that is a preview of this one. Throws when there can be none of that name. */
  inPreview(name: string | undefined): Context {
    return name === undefined ? this : new Context({ json: this.json, app: previewAppName(name, this.app) });
  }

  /** The client of the platform. Loaded late, so that `--help` does not need it. */
  async client(): Promise<HibernautClient> {
    if (this.#client) return this.#client;
    const { tls, ...connection } = findConnection(process.env);
    const clientCertificate = await prepareTls(tls);
    const { HibernautClient } = await import("@hibernaut/client");
    const leaseNonce = findLeaseNonce(process.env);
    this.#client = new HibernautClient({ ...connection, clientCertificate, leaseNonce });
    return this.#client;
  }

  /** Returns what makes clients of the same platform with other tokens. This command's own token is not needed for it. */
  async clientsOf(): Promise<(token: string) => HibernautClient> {
    const { tls, apiUrl } = findPlatform(process.env);
    const clientCertificate = await prepareTls(tls);
    const { HibernautClient } = await import("@hibernaut/client");
    return (token) => new HibernautClient({ apiUrl, token, clientCertificate });
  }

  /** Writes a line to standard error, which is for everything except the result. */
  say(line: string): void {
    const about = this.#about === undefined ? "" : `${this.#about}: `;
    process.stderr.write(shown(`${about}${line}\n`, process.stderr));
  }

  /** Says what the user should know although the command continues. */
  warn(line: string): void {
    this.say(`${style("yellow", "Warning:", process.stderr)} ${line}`);
  }

  /** Shows that work is in progress. */
  progress<T>(label: string, work: Promise<T>): Promise<T> {
    return showProgress(label, work);
  }
}

/** Loads what TLS needs only where it is configured. Returns what the CLI shows to the platform, if anything. */
async function prepareTls(tls: TlsFiles): Promise<ClientCertificate | undefined> {
  const { ca, cert, key } = tls;
  if (ca === undefined && cert === undefined && key === undefined) return undefined;
  const { readClientCertificate, trustAuthorities } = await import("./tls.ts");
  if (ca !== undefined) await trustAuthorities(ca);
  return readClientCertificate(tls);
}

/** More names than this are not a help any more. */
const MOST_NAMES = 10;

function shortList(names: readonly string[]): string {
  const more = names.length - MOST_NAMES;
  return more > 0 ? `${names.slice(0, MOST_NAMES).join(", ")} and ${more} more` : names.join(", ");
}
