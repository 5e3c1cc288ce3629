/** The context that a command runs in. */
import type { HibernautClient } from "@hibernaut/client";
import { findApp, findConnection } from "./config.ts";
import { showProgress } from "./terminal.ts";

/** Options of every command, or of every command about an app. */
export interface GlobalOptions {
  json?: boolean;
  app?: string;
  /** How many words follow `--`; absent without `--`. */
  afterDashes?: number | undefined;
}

/** The platform, the app and the terminal of one command. */
export class Context {
  readonly json: boolean;
  /** How many of the command's words follow `--`; undefined without `--`. */
  readonly afterDashes: number | undefined;
  readonly #app: string | undefined;
  #client: HibernautClient | undefined;

  constructor(options: GlobalOptions) {
    this.json = options.json ?? false;
    this.afterDashes = options.afterDashes;
    this.#app = options.app;
  }

  /** The app to use. Throws a usage error when nothing names one. */
  get app(): string {
    return findApp(this.#app, process.env, process.cwd());
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

  /** The client of the platform. Loaded late, so that `--help` does not need it. */
  async client(): Promise<HibernautClient> {
    if (this.#client) return this.#client;
    const connection = findConnection(process.env);
    const { HibernautClient } = await import("@hibernaut/client");
    this.#client = new HibernautClient(connection);
    return this.#client;
  }

  /** Writes a line to standard error, which is for everything except the result. */
  say(line: string): void {
    process.stderr.write(`${line}\n`);
  }

  /** Shows that work is in progress. */
  progress<T>(label: string, work: Promise<T>): Promise<T> {
    return showProgress(label, work);
  }
}
