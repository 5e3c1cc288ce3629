/**
 * The stream in which QEMU writes the state of its devices (migration/savevm.c in its sources). Pure.
 *
 *   "QEVM", version    8 bytes
 *   configuration      which machine it is of, and which capabilities have changed its form
 *   sections           one for each device, and in a usual stream those of the memory
 */

/** What begins a stream of the version that every QEMU has written since 2009. */
const HEAD = Buffer.from([...Buffer.from("QEVM"), 0, 0, 0, 3]);
/** What begins its configuration, and a part of it. */
const CONFIGURATION = 0x07;
const SUBSECTION = 0x05;
const CAPABILITIES = "configuration/capabilities";
const CAPABILITIES_VERSION = 1;
/** How much of a stream {@link missingConfiguration} needs to see, in bytes. */
export const SEEN_BYTES = HEAD.length + 1;

/**
 * What has to be put into a stream after its first {@link HEAD_BYTES} so that QEMU loads it, given how it begins: the command that
 * leaves the memory out leaves the configuration out, too, in QEMU 7.2. Nothing where it is there. Throws when the stream is in
 * another form.
 *
 * @param machineType QEMU's name for it, such as `pc-q35-7.2`.
 * @param capabilities Those of QEMU's capabilities that a stream has to be loaded with as it was written.
 */
export function missingConfiguration(
  beginning: Buffer,
  { machineType, capabilities }: { machineType: string; capabilities: readonly string[] },
): Buffer {
  if (!beginning.subarray(0, HEAD.length).equals(HEAD) || beginning.length < SEEN_BYTES)
    throw new Error("the devices' state is in an unknown form");
  if (beginning[HEAD.length] === CONFIGURATION) return Buffer.alloc(0);
  return Buffer.concat([
    Buffer.from([CONFIGURATION]),
    uint32(machineType.length),
    Buffer.from(machineType),
    Buffer.from([SUBSECTION]),
    shortText(CAPABILITIES),
    uint32(CAPABILITIES_VERSION),
    uint32(capabilities.length),
    ...capabilities.map(shortText),
  ]);
}

/** Bytes of a stream before its configuration. */
export const HEAD_BYTES = HEAD.length;

/** A machine type as QEMU names it in streams, from what it calls the type of the object `/machine`. */
export function machineTypeIn(objectType: string): string {
  return objectType.replace(/-machine$/, "");
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function shortText(text: string): Buffer {
  return Buffer.concat([Buffer.from([text.length]), Buffer.from(text)]);
}
