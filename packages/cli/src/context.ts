/** What a command works with. */
import type { HibernautClient } from "@hibernaut/client";
import { findApp, findConnection } from "./config.ts";
import { showProgress } from "./terminal.ts";

/** Options that every command has, or every one of an app. */
export interface GlobalOptions {
  json?: boolean;
  app?: string;
  /** How many words stand after `--`; absent where there is none. */
  afterDashes?: number | undefined;
}

/** The platform, the app and the terminal of one run of the command line. */
export class Context {
  readonly json: boolean;
  /** How many of a command's words stand after `--`; undefined where there is none. */
  readonly afterDashes: number | undefined;
  readonly #app: string | undefined;
  #client: HibernautClient | undefined;

  constructor(options: GlobalOptions) {
    this.json = options.json ?? false;
    this.afterDashes = options.afterDashes;
    this.#app = options.app;
  }

  /** The app that is meant; a usage error when nothing names one. */
  get app(): string {
    return findApp(this.#app, process.env, process.cwd());
  }

  /** The app of `--app`, if it was given. For commands that are about all apps otherwise. */
  get namedApp(): string | undefined {
    return this.#app;
  }

  /** The same for another app, unless one was named on the command line or in HIBERNAUT_APP. */
  preferring(app: string | undefined): Context {
    if (app === undefined || this.#app !== undefined || process.env.HIBERNAUT_APP) return this;
    return new Context({ json: this.json, app });
  }

  /** The platform. Loaded here, so that `--help` does without it. */
  async client(): Promise<HibernautClient> {
    if (this.#client) return this.#client;
    const connection = findConnection(process.env);
    const { HibernautClient } = await import("@hibernaut/client");
    this.#client = new HibernautClient(connection);
    return this.#client;
  }

  /** Shows that work goes on. */
  progress<T>(label: string, work: Promise<T>): Promise<T> {
    return showProgress(label, work);
  }
}
