/**
 * The platform's authority for names that machines reach through it: it signs certificates for the ends of their
 * connections here, and guests that get credentials added to their requests trust it. Only this host has its key.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createSecureContext, type SecureContext } from "node:tls";
import { ifAbsent } from "@hibernaut/lib/absence";
import { makeAuthority, makeKey, type Pair, renewalOf, sign } from "@hibernaut/lib/certificates";
import { replaceFile } from "@hibernaut/lib/durable";
import { TokenBucket } from "@hibernaut/lib/token-bucket";
import { NotReached } from "./reach.ts";

/** As long as guests may keep it: nobody renews what they trust. Days. */
const AUTHORITY_DAYS = 30 * 365;
/** It is made for a name when a guest asks for it, so it need not live long. Days. */
const LEAF_DAYS = 7;
/** Certificates that are kept for an app, and apps whose certificates are. A guest may ask for any name below one that it may reach. */
const MOST_KEPT = { perApp: 64, apps: 256 };
/** New certificates for an app: each costs some milliseconds that all apps share. */
const MAKING = { perSecond: 2, burst: 64 };

const FILES = { certificate: "egress-authority.crt", key: "egress-authority.key" } as const;

export interface OutwardAuthority {
  /** Its certificate, PEM: what guests trust. The authority is made if there is none. */
  certificate(): Promise<string>;
  /**
   * What a server with this name shows to guests of the app: a certificate for it and its siblings, if it is one of many.
   * Rejects with {@link NotReached} while the app has had too many.
   */
  contextFor(name: string, place: { app: string; ofMany: boolean }): Promise<SecureContext>;
}

/** What one app has. */
interface Share {
  kept: Map<string, Kept>;
  making: TokenBucket;
}

interface Kept {
  context: Promise<SecureContext>;
  /** Milliseconds since 1970. */
  until: number;
}

/** Opens the authority of a data directory, which is read, or made, when it is first needed. */
export function openAuthority(dataDir: string): OutwardAuthority {
  let opened: Promise<Pair> | undefined;
  // Most platforms never need one.
  let leafKey: ReturnType<typeof makeKey> | undefined;
  const shares = new Map<string, Share>();
  const shareOf = (app: string) => {
    const share = shares.get(app) ?? { kept: new Map<string, Kept>(), making: new TokenBucket(MAKING) };
    // The latest come last.
    shares.delete(app);
    shares.set(app, share);
    trim(shares, MOST_KEPT.apps);
    return share;
  };
  const authority = () => {
    opened ??= readOrMake(dataDir).catch((error: unknown) => {
      opened = undefined;
      throw error;
    });
    return opened;
  };
  const make = async (name: string) => {
    leafKey ??= makeKey();
    const { key, publicKey } = leafKey;
    // Not the authority's name, which would say that it signed itself; and not the hostname, which may be too long for one.
    const leaf = { name: "Hibernaut egress to a name", names: [name], publicKey, days: LEAF_DAYS };
    return { cert: await sign(await authority(), leaf), key };
  };
  return {
    certificate: async () => (await authority()).certificate,
    async contextFor(name, { app, ofMany }) {
      const { kept, making } = shareOf(app);
      const certified = ofMany ? name.replace(/^[^.]+/, "*") : name;
      const found = kept.get(certified);
      if (found !== undefined && Date.now() < found.until) return found.context;
      if (making.left < 1) throw new NotReached(`app ${app} asks for too many names at once`);
      making.take(1);
      const context = make(certified).then(({ cert, key }) => {
        one.until = renewalOf(cert);
        return createSecureContext({ cert, key });
      });
      const one: Kept = { context, until: Number.POSITIVE_INFINITY };
      kept.delete(certified);
      kept.set(certified, one);
      trim(kept, MOST_KEPT.perApp);
      context.catch(() => kept.delete(certified));
      return context;
    },
  };
}

/** Removes what came first until there are no more than `most`. */
function trim(map: Map<string, unknown>, most: number): void {
  for (const key of map.keys()) {
    if (map.size <= most) return;
    map.delete(key);
  }
}

async function readOrMake(dataDir: string): Promise<Pair> {
  const pathOf = (part: keyof Pair) => join(dataDir, FILES[part]);
  const read = (part: keyof Pair) => readFile(pathOf(part), "utf8").catch(ifAbsent(undefined));
  const [certificate, key] = await Promise.all([read("certificate"), read("key")]);
  if (certificate !== undefined && key !== undefined) return { certificate, key };
  const made = await makeAuthority("Hibernaut egress", AUTHORITY_DAYS);
  // The certificate comes last: one without a key would be trusted for nothing.
  await replaceFile(pathOf("key"), made.key, { mode: 0o600 });
  await replaceFile(pathOf("certificate"), made.certificate, { mode: 0o644 });
  return made;
}
