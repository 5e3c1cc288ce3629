/** Where an app answers, as far as the platform knows for sure: a pure rule. Better no address than a wrong one. */

/** A port on which a proxy listens. */
export interface Front {
  scheme: "http" | "https";
  /** As it was bound: `127.0.0.1`, `0.0.0.0`, `::`. */
  address: string;
  port: number;
  /** Whether it can answer for the name: over TLS it needs a certificate. */
  covers(name: string): boolean;
}

export interface Names {
  /** Of the app's own. */
  hostnames: readonly string[];
  /** `<app>.<suffix>` is the app. */
  suffixes: readonly string[];
  fronts: readonly Front[];
}

const LOOPBACK = ["127.0.0.1", "::1"];
const EVERYWHERE = ["0.0.0.0", "::"];
const USUAL_PORT = { http: 80, https: 443 } as const;

/**
 * One address for each of the app's names, its own names first, with TLS where there is a certificate.
 *
 * @example
 * urlsOf("shop", { hostnames: [], suffixes: ["localhost"], fronts: [plain] }); // ["http://shop.localhost:8080/"]
 */
export function urlsOf(app: string, { hostnames, suffixes, fronts }: Names): string[] {
  const names = [...hostnames, ...suffixes.map((suffix) => `${app}.${suffix}`)];
  return names.flatMap((name) => {
    const fitting = fronts.filter((front) => reaches(name, front) && front.covers(name));
    // No authority vouches for names under localhost: a certificate that covers them is one that clients refuse.
    const wanted = isLocal(name) ? "http" : "https";
    const front = fitting.find(({ scheme }) => scheme === wanted) ?? fitting[0];
    return front === undefined ? [] : [urlOf(name, front)];
  });
}

/**
 * Names under `localhost` are this host's loopback. Any other name leads to an address of the host, or to something
 * in front of it: where the proxy listens on loopback only, what clients type is not known here.
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
