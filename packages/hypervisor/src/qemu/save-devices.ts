/** The devices' state of a QEMU whose stream would contain its memory, because it has mapped that privately. */
import { createWriteStream } from "node:fs";
import { constants, type FileHandle, open } from "node:fs/promises";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { HEAD_BYTES, machineTypeIn, missingConfiguration, SEEN_BYTES } from "./device-stream.ts";
import { type Qmp, QmpError } from "./qmp.ts";

/** A machine's devices take a few megabytes. A QEMU that a guest has taken over must not fill the disk. */
const MOST_STATE_BYTES = 256 * 1024 * 1024;
/** The only one of {@link STREAM_CAPABILITIES} that changes the form of a stream. */
const IGNORE_SHARED = "x-ignore-shared";
/** QEMU and the platform share the memory file, so only the device state goes through the stream. */
export const STREAM_CAPABILITIES = [IGNORE_SHARED, "events"].map((capability) => ({ capability, state: true }));

/**
 * Writes it to a new file. `written` is the file that QEMU can write to. Only this command of QEMU leaves the memory out; it was made
 * for Xen, whose memory is not QEMU's either.
 */
export async function saveDevices(
  qmp: Qmp,
  { written, to, durable }: { written: string; to: string; durable: boolean },
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  const type = await qmp.execute<string>("qom-get", { path: "/machine", property: "type" });
  await qmp.execute("xen-save-devices-state", { filename: written, live: false });
  // It is in a directory of QEMU's user: a link there may lead anywhere.
  await using state = await open(written, constants.O_RDWR | constants.O_NOFOLLOW);
  try {
    const missing = missingConfiguration(await beginningOf(state), {
      machineType: machineTypeIn(type),
      capabilities: [IGNORE_SHARED],
    });
    const target = createWriteStream(to, { mode: 0o600, flush: durable });
    const parts = async function* () {
      yield* state.createReadStream({ start: 0, end: HEAD_BYTES - 1, autoClose: false });
      yield missing;
      yield* state.createReadStream({ start: HEAD_BYTES, autoClose: false });
    };
    await pipeline(parts, atMost(), target, { signal });
  } finally {
    await state.truncate(0);
  }
}

async function beginningOf(state: FileHandle): Promise<Buffer> {
  const { buffer, bytesRead } = await state.read(Buffer.alloc(SEEN_BYTES), 0, SEEN_BYTES, 0);
  return buffer.subarray(0, bytesRead);
}

/** Passes a state's bytes on, and fails when there are more than a machine's devices can have. */
export function atMost(bytes = MOST_STATE_BYTES): Transform {
  let left = bytes;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      left -= chunk.length;
      if (left < 0) done(new QmpError(`the devices' state has more than ${bytes} bytes`));
      else done(null, chunk);
    },
  });
}
