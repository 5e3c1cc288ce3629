/** Disks of a guest as they were at one moment, while the guest writes to them. */
import { once } from "node:events";
import { rm, stat } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { background } from "@hibernaut/lib/background";
import { messageOf } from "@hibernaut/lib/text";
import { type DiskCopy, type KeptDisks, KeptLost } from "../../contract.ts";
import { shareOwner } from "../jail/owning.ts";
import type { Qmp } from "../qmp.ts";
import { serveNbd } from "./nbd.ts";
import { type DiskNode, findDisks, insertFilter, removeFilters } from "./nodes.ts";
import { requireKept } from "./probe.ts";
import { Room, SavedBlocks } from "./saved-blocks.ts";

interface Kept extends DiskNode {
  saved: SavedBlocks;
}

/** Where QEMU finds the server, and whom that belongs to. */
interface Place {
  runDir: string;
  /** A file of the machine's user. */
  owned: string;
}

/** Serves what QEMU wants to be kept. */
class Server implements AsyncDisposable {
  readonly socket: string;
  readonly #listener = createServer();
  readonly #clients = new Set<Socket>();
  readonly #lost = new AbortController();
  #over = false;

  /** `find` returns what is kept of the disk with this name. */
  constructor(runDir: string, disks: number, find: (name: string) => SavedBlocks | undefined) {
    this.socket = join(runDir, "kept.sock");
    this.#listener.maxConnections = disks;
    this.#listener.on("connection", (client) => {
      this.#clients.add(client);
      background(this.#serve(client, find), "keeping what a guest overwrites");
    });
  }

  async #serve(client: Socket, find: (name: string) => SavedBlocks | undefined): Promise<void> {
    const why = await serveNbd(client, find).catch((error: unknown) => messageOf(error));
    client.destroy();
    this.#clients.delete(client);
    if (this.#over) return;
    // QEMU has given up, or broken off, and does not come again.
    this.#lost.abort(new KeptLost(`what was on the disks was lost (${why ?? "QEMU has closed the connection"})`));
    this.#listener.close();
  }

  /** Aborts when something may be lost. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  async listen(owned: string): Promise<void> {
    await rm(this.socket, { force: true });
    this.#listener.listen(this.socket);
    await once(this.#listener, "listening");
    await shareOwner(owned, this.socket);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over = true;
    this.#listener.close();
    for (const client of this.#clients) client.destroy();
    await rm(this.socket, { force: true });
  }
}

/**
 * Keeps the disks of a paused guest. Undefined where this QEMU cannot (before 7.1), or does not find the disks. Rejects when nothing is
 * kept for another reason.
 */
export async function keepDisks(qmp: Qmp, files: readonly string[], place: Place): Promise<KeptDisks | undefined> {
  await removeFilters(qmp);
  const disks = await findDisks(qmp, files);
  if (disks === undefined) return undefined;
  const kept: Kept[] = [];
  const room = new Room(place.runDir);
  const server = new Server(place.runDir, disks.length, (name) => kept.find(({ number }) => number === name)?.saved);
  const release = async () => {
    await server[Symbol.asyncDispose]();
    // A QEMU that has ended has no filters.
    await removeFilters(qmp).catch(() => {});
    for (const { saved } of kept.splice(0)) await saved.close();
  };
  try {
    for (const disk of disks) {
      // As the file system says: a QEMU that a guest has taken over may say anything.
      const { size } = await stat(disk.file);
      kept.push({ ...disk, saved: await SavedBlocks.open(join(place.runDir, `kept-${disk.number}`), size, room) });
    }
    await server.listen(place.owned);
    for (const disk of kept) await insertFilter(qmp, disk, { socket: server.socket, name: disk.number });
  } catch (error) {
    await release();
    if (/on-cbw-error|copy-before-write|snapshot-access/.test(messageOf(error))) return undefined;
    throw error;
  }
  return {
    lost: server.lost,
    complete: (copies, signal) => complete(qmp, { kept, server }, copies, signal),
    release,
  };
}

async function complete(
  qmp: Qmp,
  { kept, server }: { kept: readonly Kept[]; server: Server },
  copies: readonly DiskCopy[],
  signal: AbortSignal,
): Promise<void> {
  for (const disk of kept)
    await requireKept(qmp, disk, signal).catch((error: unknown) => {
      signal.throwIfAborted();
      throw new KeptLost(`what was on the disk ${disk.file} when the copy began was lost (${messageOf(error)})`);
    });
  server.lost.throwIfAborted();
  for (const { from, to } of copies) await kept.find(({ file }) => file === from)?.saved.putInto(to, signal);
}
