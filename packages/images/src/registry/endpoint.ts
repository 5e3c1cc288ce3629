/** The address of a registry, and the addresses it may redirect to: TLS only, except for hosts that are trusted without. */
import { RegistryFault } from "./fault.ts";
import { codeOf, getOnce, type Transport } from "./request.ts";

/** Docker Hub's name in references, and the host of its registry. */
const DOCKER_HUB = { name: "docker.io", host: "registry-1.docker.io" };

/** Whether a registry may use plain HTTP: on loopback always, as in Docker, elsewhere only if it is in `insecure`. */
export function mayBePlain(host: string, insecure: readonly string[]): boolean {
  const name = host.replace(/:\d+$/, "");
  return name === "localhost" || /^127(?:\.\d{1,3}){3}$/.test(name) || insecure.includes(host);
}

/** A registry's address. */
export class Endpoint {
  /** The name of the registry, as in references. */
  readonly host: string;
  readonly insecure: readonly string[];
  readonly #plain: boolean;

  constructor(host: string, insecure: readonly string[]) {
    this.host = host;
    this.insecure = insecure;
    this.#plain = mayBePlain(host, insecure);
  }

  /** Returns the base address of the API. Sends a request only where both HTTP and HTTPS are possible. */
  async base(transport: Transport, signal: AbortSignal): Promise<URL> {
    const host = this.host === DOCKER_HUB.name ? DOCKER_HUB.host : this.host;
    const secure = new URL(`https://${host}/v2/`);
    if (!this.#plain) return secure;
    try {
      (await getOnce(secure, {}, transport, signal)).destroy();
      return secure;
    } catch (error) {
      if (!speaksNoTls(error)) throw error;
      return new URL(`http://${host}/v2/`);
    }
  }

  /** Resolves an address that the registry sent, for a redirect or a token. Throws when it may not be used. */
  follow(location: string, from: URL): URL {
    let url: URL;
    try {
      url = new URL(location, from);
    } catch {
      throw new RegistryFault("unreachable", "it redirected to something that is not a valid address");
    }
    const allowed = url.protocol === "https:" || (url.protocol === "http:" && this.#plain && this.#trusts(url));
    if (allowed && url.username === "" && url.password === "") return url;
    // Leaves out the rest of the address, because signed ones contain a secret.
    throw new RegistryFault(
      "unreachable",
      `it redirected to ${url.protocol}//${url.host}, which is not protected by TLS`,
    );
  }

  #trusts(url: URL): boolean {
    return mayBePlain(url.host, this.insecure);
  }
}

/** Whether the server uses plain HTTP: it then answers a TLS greeting with text or closes the connection. */
function speaksNoTls(error: unknown): boolean {
  const code = codeOf((error as Error).cause);
  return code === "EPROTO" || code === "ECONNRESET" || code.startsWith("ERR_SSL_");
}
