/** Asks a host of a cluster to let this one join. The token says how to recognize that host, which has nothing else to show. */
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { type RequestOptions, request } from "node:https";
import type { TLSSocket } from "node:tls";
import { HibernautError } from "@hibernaut/domain/errors";
import { CLOCK_SKEW_MS, keyFingerprint } from "@hibernaut/lib/certificates";
import { messageOf } from "@hibernaut/lib/text";
import { certificateHash, type JoinReply, type JoinRequest } from "./admission.ts";
import { requireClock } from "./certificate.ts";
import type { JoinToken } from "./join-token.ts";
import { answerOf } from "./peer-body.ts";
import { ALPN, splitAddress } from "./peers.ts";

/** How long it may take altogether. */
const TIMEOUT_MS = 15_000;
/** The longest answer that is read. */
const MAX_REPLY_BYTES = 256 * 1024;

/**
 * Resolves with what the cluster gives a host that joins, and the address at which that host sees this one. Rejects with
 * the cluster's refusal, with `unauthenticated` when another cluster answers, with `failed_precondition` when a clock is
 * wrong, and with `unavailable` when nothing answers.
 */
export async function askToJoin(token: JoinToken, body: JoinRequest): Promise<{ reply: JoinReply; address: string }> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const options: RequestOptions = {
    ...splitAddress(token.peer),
    ...{ method: "POST", path: "/join", agent: false, signal },
    ...{ ALPNProtocols: [ALPN.join], minVersion: "TLSv1.3" },
    // The certificate is compared with the token's fingerprint before anything is sent.
    rejectUnauthorized: false,
    headers: { "Content-Type": "application/json" },
  };
  const outgoing = request(options);
  outgoing.on("error", () => {}); // those that wait for it hear of it
  try {
    const [socket] = (await once(outgoing, "socket", { signal })) as [TLSSocket];
    if (!socket.authorized) await once(socket, "secureConnect", { signal });
    requirePinned(socket, token);
    const address = socket.localAddress ?? "";
    outgoing.end(JSON.stringify(body));
    const [response] = (await once(outgoing, "response", { signal })) as [IncomingMessage];
    const tooLong = () => new Error("its answer is too long");
    const reply = (await answerOf(response, MAX_REPLY_BYTES, tooLong)) as JoinReply;
    requireSameTime(reply, token);
    return { reply, address };
  } catch (error) {
    if (error instanceof HibernautError) throw error;
    throw new HibernautError(
      "unavailable",
      `No host of the cluster answers at ${token.peer}: ${messageOf(error)}. Check that the platform runs there, and that this host can connect to that port (HIBERNAUT_PEER_LISTEN).`,
      { peer: token.peer },
      { cause: error },
    );
  } finally {
    // What answers may be anything, and would keep the command from ending.
    outgoing.destroy();
  }
}

/**
 * Throws unless the certificate was signed by the authority whose fingerprint the token has, for the key of the host that
 * made the token, and is valid now. The authority alone does not do: every host that was a member once has it.
 */
function requirePinned(socket: TLSSocket, { authority, key, peer }: JoinToken): void {
  const shown = socket.getPeerCertificate(true);
  const signer = shown.issuerCertificate as typeof shown | undefined;
  const certificate = shown.raw === undefined ? undefined : new X509Certificate(shown.raw);
  const issuer = signer?.raw === undefined ? undefined : new X509Certificate(signer.raw);
  const isPinned = issuer !== undefined && certificateHash(issuer.toString()) === authority;
  const isSigned = certificate !== undefined && isPinned && certificate.verify(issuer.publicKey);
  if (!isSigned || keyFingerprint(certificate) !== key)
    throw new HibernautError(
      "unauthenticated",
      `What answers at ${peer} does not belong to the cluster that the join token is for. Check the address, and make a new token with \`hibernaut cluster token\`.`,
      { peer },
    );
  requireClock(`host at ${peer}`, certificate.toString());
}

function requireSameTime({ now }: JoinReply, { peer }: JoinToken): void {
  const apart = Date.now() - Date.parse(now);
  if (Math.abs(apart) <= CLOCK_SKEW_MS) return;
  const minutes = Math.round(Math.abs(apart) / 60_000);
  throw new HibernautError(
    "failed_precondition",
    `This host's clock is ${minutes} minutes ${apart < 0 ? "behind" : "ahead of"} that of the host at ${peer}. Set the clocks, for example with systemd-timesyncd, and join again.`,
    { minutes, peer },
  );
}
