/** Lets hosts join: makes join tokens, and gives a host that shows one what it needs to become a member. */
import { createHash, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { HibernautError, isHibernautError } from "@hibernaut/domain/errors";
import { background } from "@hibernaut/lib/background";
import { keyFingerprint } from "@hibernaut/lib/certificates";
import { wipe } from "@hibernaut/lib/wipe";
import type { View } from "./cluster.ts";
import type { Directory } from "./contract.ts";
import type { DirectoryPlace, Home } from "./home.ts";
import { requireHostName } from "./host-name.ts";
import { signHost } from "./identity.ts";
import { hashOf, newJoinSecret, writeJoinToken } from "./join-token.ts";
import { type JoinRecord, KEYS, type MemberRecord } from "./keys.ts";
import type { Log } from "./ownership/retry.ts";
import { textOf } from "./peer-body.ts";
import { put, read } from "./stored.ts";
import { requireFitting } from "./versions.ts";

/** How long the directory may take for what a host asks. */
const REQUEST_MS = 10_000;
/** How long a connection may last: a request, and as long again for its answer. */
const CONNECTION_MS = 2 * REQUEST_MS;
/** A request is a few fields and a public key. */
const MAX_BODY_BYTES = 16 * 1024;
/** Hosts that join at the same time. */
const MAX_CONNECTIONS = 32;

/** What a host that joins sends. */
export interface JoinRequest {
  id: string;
  secret: string;
  name: string;
  /** PEM. Its private key never leaves the host. */
  publicKey: string;
  version: string;
  region: string;
}

/** What it gets. With it, it claims its own member record, and the token's. */
export interface JoinReply {
  clusterId: string;
  region: string;
  directory: DirectoryPlace;
  authority: { certificate: string; key: string };
  certificate: string;
  /** Base64. */
  secretsKey: string;
  /** The clock of the host that answered, RFC 3339. */
  now: string;
}

interface AdmissionOptions {
  directory: Directory;
  home: Home;
  version: string;
  view: View;
  secretsKey(): Buffer;
  log: Log;
}

export class Admission {
  readonly #options: AdmissionOptions;
  readonly #server: Server;
  readonly #sockets = new Set<Duplex>();

  constructor(options: AdmissionOptions) {
    this.#options = options;
    this.#server = createServer((request, response) =>
      background(this.#answer(request, response), "answering a host that joins"),
    );
  }

  /** Makes a token with which one host can join. Rejects with `unavailable` when the directory is out of reach. */
  async createToken(lifetimeMs: number, signal?: AbortSignal): Promise<{ token: string; expiresAt: string }> {
    const { directory, home, view } = this.#options;
    const peer = view.host(home.host)?.up?.peer;
    if (peer === undefined)
      throw new HibernautError(
        "unavailable",
        "This host's lease in the cluster is not alive, so no host could join through it. `hibernaut cluster status` says why.",
      );
    const { id, secret } = newJoinSecret();
    const expiresAt = new Date(Date.now() + lifetimeMs).toISOString();
    const record: JoinRecord = { hash: hashOf(secret), expiresAt };
    const lease = await directory.lease(lifetimeMs, signal);
    const join = `${KEYS.joins}${id}`;
    await directory.transact([{ key: join, revision: 0 }], [{ ...put(join, record), lease }], signal);
    const authority = certificateHash(home.authority.certificate);
    const key = keyFingerprint(home.identity.key);
    return { token: writeJoinToken({ peer, id, secret, authority, key, expiresAt }), expiresAt };
  }

  /**
   * Serves a connection of a host that has no certificate yet, so anybody's: one of a few, and for a short time. The HTTP
   * server's own limits hold only for a server that listens.
   */
  accept(socket: Duplex): void {
    if (this.#sockets.size >= MAX_CONNECTIONS) return void socket.destroy();
    this.#sockets.add(socket);
    const timer = setTimeout(() => socket.destroy(), CONNECTION_MS);
    socket.once("close", () => {
      clearTimeout(timer);
      this.#sockets.delete(socket);
    });
    this.#server.emit("connection", socket);
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      if (request.method !== "POST" || request.url !== "/join")
        throw new HibernautError("not_found", "Use POST /join.");
      const joining = await readRequest(request);
      const reply = await this.#admit(joining, AbortSignal.timeout(REQUEST_MS));
      this.#options.log.info({ joining: joining.name }, `host ${joining.name} showed a join token`);
      send(response, 200, reply);
    } catch (error) {
      if (!isHibernautError(error)) this.#options.log.warn({ err: error }, "a host could not join");
      const { code, message, status } = isHibernautError(error)
        ? error
        : new HibernautError("internal", "A fault of the platform kept the host from joining. Its log says more.");
      send(response, status, { error: code, message });
    }
  }

  async #admit(joining: JoinRequest, signal: AbortSignal): Promise<JoinReply> {
    const { directory, home, version, secretsKey } = this.#options;
    await this.#requireToken(joining, signal);
    requireFitting(joining.version, home.host, version);
    if (joining.region !== home.region)
      throw new HibernautError(
        "failed_precondition",
        `The region of the cluster is ${home.region}, and the joining host's is ${joining.region}. Set HIBERNAUT_REGION=${home.region} there, or make a cluster of its own.`,
      );
    requireHostName(joining.name);
    const member = await read<MemberRecord>(directory, `${KEYS.members}${joining.name}`, signal);
    if (member !== undefined && member.value.fingerprint !== keyFingerprint(joining.publicKey))
      throw nameTaken(joining.name);
    const key = secretsKey();
    try {
      return {
        clusterId: home.id,
        region: home.region,
        directory: home.directory,
        authority: home.authority,
        certificate: await signHost(home.authority, joining.name, joining.publicKey),
        secretsKey: key.toString("base64"),
        now: new Date().toISOString(),
      };
    } finally {
      wipe(key);
    }
  }

  async #requireToken({ id, secret }: JoinRequest, signal: AbortSignal): Promise<void> {
    const join = await read<JoinRecord>(this.#options.directory, `${KEYS.joins}${id}`, signal);
    if (join === undefined)
      throw new HibernautError(
        "unauthenticated",
        "The join token was used, has expired, or was revoked. Make a new one with `hibernaut cluster token` on a host of the cluster.",
      );
    const { hash, expiresAt } = join.value;
    if (!timingSafeEqual(Buffer.from(hash, "hex"), Buffer.from(hashOf(secret), "hex")))
      throw new HibernautError(
        "unauthenticated",
        "The join token is not valid: its secret is wrong. Copy all of what `hibernaut cluster token` printed.",
      );
    if (Date.parse(expiresAt) > Date.now()) return;
    throw new HibernautError(
      "unauthenticated",
      `The join token expired at ${expiresAt} by the clock of host ${this.#options.home.host}. Make a new one with \`hibernaut cluster token\`.`,
    );
  }
}

/** The error for a name that a member has. */
export function nameTaken(name: string): HibernautError {
  return new HibernautError(
    "already_exists",
    `A host named ${name} is a member of the cluster. Choose another name with --name. If that host is gone for good, remove it first with \`hibernaut cluster remove ${name}\`.`,
    { host: name },
  );
}

/** SHA-256 of a certificate, hex. */
export function certificateHash(pem: string): string {
  const der = Buffer.from(pem.replaceAll(/-----[A-Z ]+-----|\s/g, ""), "base64");
  return createHash("sha256").update(der).digest("hex");
}

async function readRequest(request: IncomingMessage): Promise<JoinRequest> {
  const tooLong = () => new HibernautError("payload_too_large", "The request is too long.");
  const text = await textOf(request, MAX_BODY_BYTES, tooLong);
  let body: Partial<JoinRequest>;
  try {
    body = JSON.parse(text) as Partial<JoinRequest>;
  } catch {
    body = {};
  }
  const { id, secret, name, publicKey, version, region } = body;
  if ([id, secret, name, publicKey, version, region].some((field) => typeof field !== "string"))
    throw new HibernautError("invalid_argument", "The request to join lacks a field.");
  if (!/^[0-9a-f]{16}$/.test(id as string))
    throw new HibernautError("invalid_argument", "The join token's id is not valid.");
  return body as JoinRequest;
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "Content-Type": "application/json", Connection: "close" }).end(JSON.stringify(body));
}
