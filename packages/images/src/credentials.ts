/** Logins for registries: the platform's in `<dataDir>/registries.json`, and those that docker and skopeo keep. */
import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import { ifAbsent } from "@hibernaut/lib/absence";
import { replaceFile } from "@hibernaut/lib/durable";
import { wiping } from "@hibernaut/lib/wipe";
import type { Login } from "./contract.ts";

type Logins = Record<string, Login>;

/** The platform's own logins. One per data directory. */
export class LoginStore {
  readonly #file: string;
  /** The last change. Changes run one after the other, because each writes the whole file. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(file: string) {
    this.#file = file;
  }

  /** Lists all logins, sorted by host. */
  async list(): Promise<{ host: string; username: string }[]> {
    const logins = Object.entries(await this.#read());
    return logins.map(([host, { username }]) => ({ host, username })).sort((a, b) => (a.host < b.host ? -1 : 1));
  }

  /** Returns the login for a host. Undefined when there is none. */
  async get(host: string): Promise<Login | undefined> {
    return (await this.#read())[host];
  }

  /** Stores a login, and replaces an earlier one for the host. */
  async put(host: string, login: Login): Promise<void> {
    await this.#change((logins) => ({ ...logins, [host]: login }));
  }

  /** Deletes the login for a host. False when there was none. */
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
    const text = await readFile(this.#file, "utf8").catch(ifAbsent("{}"));
    try {
      // Without a prototype, so that a host named `constructor` is just a name.
      return Object.assign(Object.create(null), JSON.parse(text)) as Logins;
    } catch {
      // The parser's own message may quote a password.
      const message = `${this.#file} is not valid JSON, so no login for a registry can be read. Repair it, or delete it and log in again.`;
      throw new HibernautError("unavailable", message, { file: this.#file });
    }
  }

  #write(logins: Logins): Promise<void> {
    return replaceFile(this.#file, `${JSON.stringify(logins, null, 2)}\n`, { mode: 0o600 });
  }
}

/** Lists the files in which docker, podman and skopeo keep this user's logins. The first one that has a login wins. */
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

/** Finds a login in such a file. Undefined when there is none, or a credential helper keeps it. Never rejects. */
export async function foreignLogin(file: string, host: string, repository: string): Promise<Login | undefined> {
  let auths: Record<string, { auth?: unknown } | null> = {};
  try {
    auths = (JSON.parse(await readFile(file, "utf8")) as { auths?: typeof auths }).auths ?? {};
  } catch {
    return undefined; // a file that is missing, not readable or not JSON has no login for us
  }
  for (const name of namesOf(host, repository)) {
    const auth = Object.hasOwn(auths, name) ? auths[name]?.auth : undefined;
    if (typeof auth !== "string") continue;
    const [username, ...password] = wiping(Buffer.from(auth, "base64"), String).split(":");
    if (username && password.length > 0) return { username, password: password.join(":") };
  }
  return undefined;
}

/** The names that such files use: the repository and its parents (podman), the host, and addresses (docker). */
function namesOf(host: string, repository: string): string[] {
  const parts = `${host}/${repository}`.split("/");
  const paths = parts.map((_, index) => parts.slice(0, parts.length - index).join("/"));
  const hub = ["https://index.docker.io/v1/", "index.docker.io", "registry-1.docker.io"];
  return [...paths, `https://${host}`, ...(host === "docker.io" ? hub : [])];
}
