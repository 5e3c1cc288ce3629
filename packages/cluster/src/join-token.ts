/** The token with which a host joins: where to ask, how to recognize who answers, and a secret. Pure. */
import { createHash, randomBytes } from "node:crypto";
import { HibernautError } from "@hibernaut/domain/errors";

const PREFIX = "hibjoin_";

export interface JoinToken {
  /** The peer port of a host of the cluster, `host:port`. */
  peer: string;
  id: string;
  secret: string;
  /** SHA-256 of the authority's certificate, hex. */
  authority: string;
  /** SHA-256 of the public key of the host at `peer`, hex. */
  key: string;
  /** RFC 3339. */
  expiresAt: string;
}

/** Makes the random parts of a token. */
export function newJoinSecret(): { id: string; secret: string } {
  return { id: randomBytes(8).toString("hex"), secret: randomBytes(32).toString("base64url") };
}

export function hashOf(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

export function writeJoinToken(token: JoinToken): string {
  return PREFIX + Buffer.from(JSON.stringify(token)).toString("base64url");
}

/** Throws `invalid_argument` when the text is not a join token. */
export function readJoinToken(text: string): JoinToken {
  try {
    if (!text.startsWith(PREFIX)) throw new Error("another prefix");
    const token = JSON.parse(Buffer.from(text.slice(PREFIX.length), "base64url").toString()) as Partial<JoinToken>;
    const { peer, id, secret, authority, key, expiresAt } = token;
    const texts = [peer, id, secret, authority, key, expiresAt];
    if (texts.some((each) => typeof each !== "string" || each === "")) throw new Error("parts are missing");
    return token as JoinToken;
  } catch (error) {
    const looks = text.startsWith("hib_") ? " This one is a token for the API." : "";
    throw new HibernautError(
      "invalid_argument",
      `That is not a valid join token: it begins with ${PREFIX} and is one line.${looks} Copy all of what \`hibernaut cluster token\` printed on a host of the cluster.`,
      {},
      { cause: error },
    );
  }
}
