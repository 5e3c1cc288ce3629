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

/** As long as guests may keep it: nobody renews what they trust. Days. */
const AUTHORITY_DAYS = 30 * 365;
/** It is made for a name when a guest asks for it, so it need not live long. Days. */
const LEAF_DAYS = 7;
/** Names whose certificates are kept. A guest may ask for any name below one that it may reach. */
const MOST_KEPT = 256;

const FILES = { certificate: "egress-authority.crt", key: "egress-authority.key" } as const;

export interface OutwardAuthority {
  /** Its certificate, PEM: what guests trust. The authority is made if there is none. */
  certificate(): Promise<string>;
  /** What a server with this name shows to guests. */
  contextFor(name: string): Promise<SecureContext>;
}

interface Kept {
  context: Promise<SecureContext>;
  /** Milliseconds since 1970. */
  until: number;
}

/** Opens the authority of a data directory, which is read, or made, when it is first needed. */
export function openAuthority(dataDir: string): OutwardAuthority {
  let opened: Promise<Pair> | undefined;
  const leafKey = makeKey();
  const kept = new Map<string, Kept>();
  const authority = () => {
    opened ??= readOrMake(dataDir).catch((error: unknown) => {
      opened = undefined;
      throw error;
    });
    return opened;
  };
  const make = async (name: string) => {
    // Not the authority's name, which would say that it signed itself; and not the hostname, which may be too long for one.
    const leaf = { name: "Hibernaut egress to a name", names: [name], publicKey: leafKey.publicKey, days: LEAF_DAYS };
    return sign(await authority(), leaf);
  };
  return {
    certificate: async () => (await authority()).certificate,
    async contextFor(name) {
      const found = kept.get(name);
      if (found !== undefined && Date.now() < found.until) return found.context;
      const context = make(name).then((cert) => {
        one.until = renewalOf(cert);
        return createSecureContext({ cert, key: leafKey.key });
      });
      const one: Kept = { context, until: Number.POSITIVE_INFINITY };
      kept.set(name, one);
      for (const old of [...kept.keys()].slice(0, Math.max(0, kept.size - MOST_KEPT))) kept.delete(old);
      context.catch(() => kept.delete(name));
      return context;
    },
  };
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
