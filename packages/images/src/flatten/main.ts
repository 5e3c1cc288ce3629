/**
 * The program that makes a root file system of an image's layers: it reads them twice, first to see what they are
 * together and whether that is within the limits, then to give the files to sqfstar. Owners, modes and devices are words
 * in an archive the whole way, so it needs no rights, and runs in a jail where there is one. Imports nothing from the
 * platform.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { statfs } from "node:fs/promises";
import type { Writable } from "node:stream";
import { hardLink, planOf, written } from "./emit.ts";
import { Budget, eachEntry, readHeads } from "./layer.ts";
import { type FlattenOrder, PACKING, REFUSED } from "./order.ts";
import { damaged, Refusal } from "./refusal.ts";
import { setRootOwner } from "./root-inode.ts";
import { headsOf, padding, TAR_END, type WrittenEntry } from "./tar-write.ts";
import { addLayer, emptyRoot } from "./tree.ts";

/** setpriv's exit code when the program does not exist (127) or may not be run (126). */
const NOT_STARTED: ReadonlySet<number> = new Set([126, 127]);
/** The reason of a failure is near the end. Characters. */
const SAID = 4096;
/** How often the disk is looked at. */
const LOOK_BYTES = 256 * 1024 * 1024;

async function flatten(order: FlattenOrder): Promise<void> {
  const { layers, limits, pack, out } = order;
  const root = emptyRoot();
  const budget = new Budget(limits);
  for (const [at, layer] of layers.entries()) addLayer(root, await readHeads(layer, budget), at);
  const { heads, files } = planOf(root);
  await requireRoom(order, budget.bytes);
  console.log(PACKING);
  // It ends with this program, also when that is killed.
  const words = ["--pdeathsig", "KILL", "--", ...pack, "-root-mode", root.entry.mode.toString(8), out];
  const packer = spawn("setpriv", words, { stdio: ["pipe", "ignore", "pipe"] });
  let said = "";
  packer.stderr.setEncoding("utf8").on("data", (text: string) => (said = (said + text).slice(-SAID)));
  const ended = new Promise<void>((resolve, reject) => {
    packer.on("error", reject);
    packer.on("close", (code) => {
      if (code === 0) resolve();
      else if (NOT_STARTED.has(code ?? 0)) reject(new Refusal("missing", pack[0]));
      else reject(new Refusal("pack", said.trim().split("\n").join("; ") || `it ended with ${code ?? "a signal"}`));
    });
  });
  // When it has ended early, why it did so matters, and not that it reads no more.
  packer.stdin.on("error", () => {});
  const wrote = write(order, { heads, files }, packer.stdin).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") await ended;
    throw error;
  });
  const [owners] = await Promise.all([wrote, ended]);
  const ids = new Set([process.getuid?.() ?? 0, process.getgid?.() ?? 0]);
  await setRootOwner(out, root.entry, { ids, owners });
}

/** Resolves with the users and groups that the files belong to. */
async function write(
  order: FlattenOrder,
  { heads, files }: ReturnType<typeof planOf>,
  to: Writable,
): Promise<Set<number>> {
  const owners = new Set<number>();
  let unlooked = 0;
  const send = async (bytes: Buffer) => {
    if (!to.write(bytes)) await once(to, "drain");
    unlooked += bytes.length;
    if (unlooked < LOOK_BYTES) return;
    unlooked = 0;
    await requireRoom(order, 0);
  };
  const sendHead = async (entry: WrittenEntry) => {
    owners.add(entry.uid).add(entry.gid);
    await send(headsOf(entry));
  };
  for (const head of heads) await sendHead(head);
  for (const [at, layer] of order.layers.entries()) {
    const ofLayer = files.get(at);
    if (ofLayer === undefined) continue;
    await eachEntry(layer, async (entry, index, bytes) => {
      const [first, ...others] = ofLayer.get(index) ?? [];
      if (first === undefined) return false;
      if (entry.kind !== "file") throw damaged("a layer changed while it was read");
      await sendHead(written(entry, first));
      await bytes.each(entry.size, send);
      await send(padding(entry.size));
      for (const other of others) await send(headsOf(hardLink(first, other)));
      return true;
    });
  }
  to.end(TAR_END);
  return owners;
}

async function requireRoom({ out, reserveBytes }: FlattenOrder, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(out);
  const short = bytes + reserveBytes - bavail * bsize;
  if (short > 0) throw new Refusal("disk", String(short));
}

try {
  await flatten(JSON.parse(process.argv[2] ?? "") as FlattenOrder);
} catch (error) {
  const refused = error instanceof Refusal;
  const said = refused ? JSON.stringify({ kind: error.kind, reason: error.message }) : String(error);
  process.stderr.write(`\n${said}\n`);
  // At once: sqfstar, if it runs, gets the end of an incomplete archive, and its file is deleted.
  process.exit(refused ? REFUSED : 1);
}
