/** Where apps answer, as far as the platform knows for sure. Better no address than a wrong one. */
import type { Hostnames } from "@hibernaut/machines";

/** A port on which a proxy listens. */
export interface Front {
  scheme: "http" | "https";
  /** As it was bound: `127.0.0.1`, `0.0.0.0`, `::`. */
  address: string;
  port: number;
  /** Whether the proxy can answer for a hostname there: over TLS it needs a certificate. */
  covers(name: string): boolean;
}

/** The addresses of apps. There are none until a proxy in the platform's own process listens. */
export class AppAddresses {
  readonly #hostnames: Pick<Hostnames, "owners" | "list" | "isReserved">;
  readonly #suffixes: readonly string[];
  #proxy: { url: string; fronts: readonly Front[] } | undefined;

  constructor(hostnames: Pick<Hostnames, "owners" | "list" | "isReserved">, suffixes: readonly string[]) {
    this.#hostnames = hostnames;
    this.#suffixes = suffixes;
  }

  /** A proxy listens. */
  opened(proxy: { url: string; fronts: readonly Front[] }): void {
    this.#proxy = proxy;
  }

  /** Returns the proxy's URL. Undefined if proxies run in processes of their own. */
  url(): string | undefined {
    return this.#proxy?.url;
  }

  /** Returns the names at which an app answers: its hostnames, and those under the suffixes. Throws `not_found` when there is no such app. */
  namesOf(app: string): string[] {
    const names = this.#hostnames.list(app).filter((name) => !this.#hostnames.isReserved(name));
    return [...names, ...this.#suffixed(app)];
  }

  /** Returns the addresses of an app that are known for sure. None if proxies run in processes of their own. */
  urlsOf(app: string): string[] {
    const owners = Object.entries(this.#hostnames.owners());
    const own = owners.filter(([, owner]) => owner === app).map(([name]) => name);
    return urlsOf([...own, ...this.#suffixed(app)], this.#proxy?.fronts ?? []);
  }

  #suffixed(app: string): string[] {
    const names = this.#suffixes.map((suffix) => `${app}.${suffix}`);
    return names.filter((name) => !this.#hostnames.isReserved(name));
  }
}

const LOOPBACK = ["127.0.0.1", "::1"];
const EVERYWHERE = ["0.0.0.0", "::"];
const USUAL_PORT = { http: 80, https: 443 } as const;

/**
 * Returns one address for each of the names at which there is one, with TLS where there is a certificate.
 *
 * @example
 * urlsOf(["shop.localhost"], [plain]); // ["http://shop.localhost:8080/"]
 */
export function urlsOf(names: readonly string[], fronts: readonly Front[]): string[] {
  return names.flatMap((name) => {
    const fitting = fronts.filter((front) => reaches(name, front) && front.covers(name));
    // No authority vouches for names under localhost: clients refuse a certificate that covers them.
    const wanted = isLocal(name) ? "http" : "https";
    const front = fitting.find(({ scheme }) => scheme === wanted) ?? fitting[0];
    return front === undefined ? [] : [urlOf(name, front)];
  });
}

/**
 * Returns whether clients that use the name arrive at the port. Names under `localhost` are this host's loopback. Any
 * other name leads to an address of the host, or to something in front of it: if the proxy listens on loopback only,
 * what clients type is not known here.
 */
function reaches(name: string, { address }: Front): boolean {
  if (EVERYWHERE.includes(address)) return true;
  return isLocal(name) ? LOOPBACK.includes(address) : address !== "::1" && !address.startsWith("127.");
}

function isLocal(name: string): boolean {
  return name.endsWith(".localhost");
}

function urlOf(name: string, { scheme, port }: Front): string {
  return `${scheme}://${name}${port === USUAL_PORT[scheme] ? "" : `:${port}`}/`;
}
