/**
 * Records what an agent and the platform say to each other, for `protocols.test.ts`. Run it once for each new version of
 * the protocol, when its agent is finished, and commit the file; a recording is never made again, because the machines
 * that sleep with that agent don't change either.
 *
 *   node packages/guest/test/protocols/record.ts <directory of the guest bundle>
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { duplexPair } from "node:stream";
import { openQemu } from "../../../hypervisor/test/qemu-harness.ts";
import { packSmallApp } from "../../../platform/test/helpers/small-app/image.ts";
import { readBundle } from "../../src/bundles.ts";
import { FrameReader, FrameType } from "../../src/frame.ts";
import { decodeHello } from "../../src/hello.ts";
import { type RecordedFrame, type Recording, recorded, tell } from "./story.ts";

const BOOT_MS = 120_000;

await packSmallApp();
const harness = await openQemu();
try {
  const spec = { ...(await harness.newSpec()), bundle: await readBundle(process.argv[2] ?? "") };
  const vmm = await harness.hypervisor().boot(spec, AbortSignal.timeout(BOOT_MS));
  try {
    const frames: RecordedFrame[] = [];
    const guest = await vmm.openChannel(AbortSignal.timeout(BOOT_MS));
    const [ours, theirs] = duplexPair();
    const readers = { agent: new FrameReader(), platform: new FrameReader() };
    const note = (from: "agent" | "platform", chunk: Buffer) => {
      for (const frame of readers[from].push(chunk)) frames.push(recorded(from, frame));
    };
    // Noted before it is passed on, so that an answer never comes before its question.
    theirs.on("data", (chunk: Buffer) => {
      note("platform", chunk);
      guest.write(chunk);
    });
    guest.on("data", (chunk: Buffer) => {
      note("agent", chunk);
      theirs.write(chunk);
    });
    const heard = await tell(ours, {
      hostname: "recorded",
      args: ["/app", "--say", "the app speaks"],
      env: { PATH: "/", COLOR: "blue" },
      user: "",
      workdir: "/",
      network: spec.network.guest,
      ports: [8080],
      volumes: [],
      swapMb: 8,
    });
    const hello = frames.find(({ type }) => type === FrameType.hello);
    const { protocol, hello: said } = decodeHello(Buffer.from(hello?.payload ?? "", "base64"));
    const recording: Recording = { protocol, agent: said.version, frames: frames.map(withoutPadding), heard };
    const file = join(import.meta.dirname, `v${protocol}.json`);
    await writeFile(file, `${JSON.stringify(recording, null, 2)}\n`);
    console.log(`${frames.length} frames of protocol ${protocol} in ${file}`);
    console.log(heard);
  } finally {
    await vmm.kill();
  }
} finally {
  await harness.dispose();
}

/** A padding frame is 64 KB of zeros, and only its type matters. */
function withoutPadding(frame: RecordedFrame): RecordedFrame {
  return frame.type === FrameType.pad ? { ...frame, payload: "" } : frame;
}
