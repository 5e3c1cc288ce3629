/** Where a registry is, and where it may send us: TLS everywhere, but for hosts that are trusted without. */
import { RegistryFault } from "./fault.ts";
import { codeOf, getOnce, type Transport } from "./request.ts";

/** Docker Hub's name in references, and where its registry is. */
const DOCKER_HUB = { name: "docker.io", host: "registry-1.docker.io" };

/** A registry on this server may speak plain HTTP, as docker allows; any other one only when the owner lists it. */
export function mayBePlain(host: string, insecure: readonly string[]): boolean {
  const name = host.replace(/:\d+$/, "");
  return name === "localhost" || /^127(?:\.\d{1,3}){3}$/.test(name) || insecure.includes(host);
}

/** A registry's address. */
export class Endpoint {
  /** As in references. */
  readonly host: string;
  readonly insecure: readonly string[];
  readonly #plain: boolean;

  constructor(host: string, insecure: readonly string[]) {
    this.host = host;
    this.insecure = insecure;
    this.#plain = mayBePlain(host, insecure);
  }

  /** The address below which its API is. Asks only where both are possible. */
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

  /** An address that the registry named, for a redirect or a token. Throws when it may not be used. */
  follow(location: string, from: URL): URL {
    let url: URL;
    try {
      url = new URL(location, from);
    } catch {
      throw new RegistryFault("unreachable", "it sent us to something that is no address");
    }
    const allowed = url.protocol === "https:" || (url.protocol === "http:" && this.#plain && this.#trusts(url));
    if (allowed && url.username === "" && url.password === "") return url;
    // Not the whole address: signed ones carry a secret.
    throw new RegistryFault("unreachable", `it sent us to ${url.protocol}//${url.host}, which is not protected by TLS`);
  }

  #trusts(url: URL): boolean {
    return mayBePlain(url.host, this.insecure);
  }
}

/** A server of plain HTTP answers a TLS greeting with text, or hangs up. */
function speaksNoTls(error: unknown): boolean {
  const code = codeOf((error as Error).cause);
  return code === "EPROTO" || code === "ECONNRESET" || code.startsWith("ERR_SSL_");
}
