/** A proxy in front of PostgreSQL that breaks connections at a chosen moment. */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

/**
 * What happens to the next COMMIT:
 * - `lost`: it never arrives; both sides are reset.
 * - `answer lost`: it arrives and is done; instead of the answer both sides are reset.
 * - `swallowed`: it never arrives, and nobody is told: both sides stay open in silence.
 * - `answer swallowed`: it arrives and is done, the client hears nothing any more.
 */
export type Fate = "lost" | "answer lost" | "swallowed" | "answer swallowed";

export interface Cutter {
  readonly port: number;
  /** Connections accepted so far. */
  readonly accepted: number;
  /** COMMITs seen so far, whether cut or not. */
  readonly commits: number;
  /** What to do with the next COMMITs, one each, on any connection. */
  cutCommits(...fates: Fate[]): void;
  /** Existing connections stay open but pass nothing on from now on. New ones work. */
  freeze(): void;
  /** Does the same to new connections, until `thaw`. */
  freezeNew(): void;
  thaw(): void;
  /** Resets all existing connections. */
  reset(): void;
  close(): Promise<void>;
}

interface Pair {
  client: Socket;
  server: Socket;
  frozen: boolean;
}

/** Starts a proxy to that port on this machine. */
export async function startCutter(target: number): Promise<Cutter> {
  const pairs = new Set<Pair>();
  const fates: Fate[] = [];
  let accepted = 0;
  let commits = 0;
  let frozenNew = false;

  const listener = createServer((client) => {
    accepted++;
    const server = connect(target, "127.0.0.1");
    const pair: Pair = { client, server, frozen: frozenNew };
    pairs.add(pair);
    const isCommit = commitFinder();
    let onAnswer: (() => void) | undefined;
    client.on("data", (bytes) => {
      if (pair.frozen) return;
      if (!isCommit(bytes)) {
        server.write(bytes);
        return;
      }
      commits++;
      const fate = fates.shift();
      if (fate === "lost") return cut(pair);
      if (fate === "swallowed") pair.frozen = true;
      else server.write(bytes);
      if (fate === "answer lost") onAnswer = () => cut(pair);
      if (fate === "answer swallowed") onAnswer = () => void (pair.frozen = true);
    });
    server.on("data", (bytes) => {
      onAnswer?.();
      if (!pair.frozen && !client.destroyed) client.write(bytes);
    });
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      one.on("error", () => {});
      one.on("close", () => {
        // In a black hole, the other side does not notice either.
        if (pair.frozen) return;
        other.destroy();
        pairs.delete(pair);
      });
    }
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const address = listener.address();
  if (address === null || typeof address === "string") throw new Error("No port.");

  return {
    port: address.port,
    get accepted() {
      return accepted;
    },
    get commits() {
      return commits;
    },
    cutCommits: (...next) => void fates.push(...next),
    freeze: () => {
      for (const pair of pairs) pair.frozen = true;
    },
    freezeNew: () => void (frozenNew = true),
    thaw: () => void (frozenNew = false),
    reset: () => {
      for (const pair of pairs) cut(pair);
    },
    close: async () => {
      listener.close();
      for (const pair of pairs) cut(pair);
      if (listener.listening) await once(listener, "close");
    },
  };
}

function cut({ client, server }: Pair): void {
  client.resetAndDestroy();
  server.resetAndDestroy();
}

const COMMIT = Buffer.from("COMMIT\0");

/** Follows the client's messages. Returns whether these bytes complete a simple query with COMMIT. */
function commitFinder(): (bytes: Buffer) => boolean {
  let rest = Buffer.alloc(0);
  // The first message has no type before its length.
  let typeBytes = 0;
  return (bytes) => {
    let found = false;
    rest = Buffer.concat([rest, bytes]);
    while (rest.length >= typeBytes + 4) {
      const end = typeBytes + rest.readUInt32BE(typeBytes);
      if (rest.length < end) break;
      const isQuery = typeBytes === 1 && rest[0] === "Q".charCodeAt(0);
      if (isQuery && rest.subarray(5, end).equals(COMMIT)) found = true;
      rest = rest.subarray(end);
      typeBytes = 1;
    }
    return found;
  };
}
