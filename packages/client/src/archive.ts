/** Sends and receives tar archives of any size. */
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { exchange } from "./http-exchange.ts";
import type { Address, ClientOptions } from "./transport.ts";
import type { UnpackedArchive } from "./types.ts";

const TAR = "application/x-tar";

/** Returns the archive at an address. Its stream fails if the connection ends before it. */
export async function readArchive(
  options: ClientOptions,
  address: Address,
  { method = "GET", signal }: { method?: "GET" | "POST"; signal?: AbortSignal | undefined },
): Promise<Readable> {
  return exchange(options, address, { method, signal });
}

/** Sends an archive to an address and returns the reply. Destroys the archive when that fails. */
export async function writeArchive(
  options: ClientOptions,
  address: Address,
  archive: Readable,
  signal?: AbortSignal,
): Promise<UnpackedArchive> {
  try {
    const reply = await exchange(options, address, { method: "PUT", signal, body: { type: TAR, content: archive } });
    return JSON.parse(await text(reply)) as UnpackedArchive;
  } finally {
    archive.destroy();
  }
}
