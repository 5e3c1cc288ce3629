/** Logins for registries: ours in `<dataDir>/registries.json`, and those that docker and skopeo keep for this user. */
import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { HibernautError } from "../domain/errors.ts";
import { replaceFile } from "../lib/durable.ts";
import type { Login } from "./contract.ts";

type Logins = Record<string, Login>;

/** The logins that were given to the platform. One per data folder. */
export class LoginStore {
  readonly #file: string;
  /** Changes one after the other: each writes the whole file. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(file: string) {
    this.#file = file;
  }

  /** By host, in alphabetical order. */
  async list(): Promise<{ host: string; username: string }[]> {
    const logins = Object.entries(await this.#read());
    return logins.map(([host, { username }]) => ({ host, username })).sort((a, b) => (a.host < b.host ? -1 : 1));
  }

  async get(host: string): Promise<Login | undefined> {
    return (await this.#read())[host];
  }

  async put(host: string, login: Login): Promise<void> {
    await this.#change((logins) => ({ ...logins, [host]: login }));
  }

  /** Whether there was one. */
  async delete(host: string): Promise<boolean> {
    let found = false;
    await this.#change(({ [host]: login, ...rest }) => {
      found = login !== undefined;
      return rest;
    });
    return found;
  }

  #change(change: (logins: Logins) => Logins): Promise<void> {
    const work = this.#last.then(async () => this.#write(change(await this.#read())));
    this.#last = work.catch(() => {});
    return work;
  }

  async #read(): Promise<Logins> {
    const text = await readFile(this.#file, "utf8").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return "{}";
      throw error;
    });
    try {
      // No prototype: a host named `constructor` is just a name.
      return Object.assign(Object.create(null), JSON.parse(text)) as Logins;
    } catch {
      // Not the parser's own words: they may quote a password.
      const message = `${this.#file} is not JSON, so no login for a registry can be read. Repair it, or delete it and log in again.`;
      throw new HibernautError("unavailable", message, { file: this.#file });
    }
  }

  #write(logins: Logins): Promise<void> {
    return replaceFile(this.#file, `${JSON.stringify(logins, null, 2)}\n`, { mode: 0o600 });
  }
}

/** Where docker, podman and skopeo keep logins of this process's user, the first one that has it wins. */
export function foreignFiles(environment: NodeJS.ProcessEnv): string[] {
  const home = environment.HOME || homedir();
  const { REGISTRY_AUTH_FILE, XDG_RUNTIME_DIR, DOCKER_CONFIG } = environment;
  return [
    ...(REGISTRY_AUTH_FILE ? [REGISTRY_AUTH_FILE] : []),
    ...(XDG_RUNTIME_DIR ? [join(XDG_RUNTIME_DIR, "containers/auth.json")] : []),
    ...(process.getuid?.() === 0 ? ["/run/containers/0/auth.json"] : []),
    join(home, ".config/containers/auth.json"),
    join(DOCKER_CONFIG || join(home, ".docker"), "config.json"),
  ];
}

/** The login in such a file; undefined when there is none, or it is with a credential helper. Never rejects. */
export async function foreignLogin(file: string, host: string, repository: string): Promise<Login | undefined> {
  let auths: Record<string, { auth?: unknown } | null> = {};
  try {
    auths = (JSON.parse(await readFile(file, "utf8")) as { auths?: typeof auths }).auths ?? {};
  } catch {
    return undefined; // not there, not ours to read, or not JSON: then there is no login in it
  }
  for (const name of namesOf(host, repository)) {
    const auth = Object.hasOwn(auths, name) ? auths[name]?.auth : undefined;
    if (typeof auth !== "string") continue;
    const [username, ...password] = Buffer.from(auth, "base64").toString("utf8").split(":");
    if (username && password.length > 0) return { username, password: password.join(":") };
  }
  return undefined;
}

/** How those files may name it: by repository and the folders above (podman), by host, by address (docker). */
function namesOf(host: string, repository: string): string[] {
  const parts = `${host}/${repository}`.split("/");
  const paths = parts.map((_, index) => parts.slice(0, parts.length - index).join("/"));
  const hub = ["https://index.docker.io/v1/", "index.docker.io", "registry-1.docker.io"];
  return [...paths, `https://${host}`, ...(host === "docker.io" ? hub : [])];
}
