/**
 * Records what an agent and the platform say to each other, for `protocols.test.ts`. Run it once for each new version of
 * the protocol, when its agent is finished, and commit the file; a recording is never made again, because the machines
 * that sleep with that agent don't change either.
 *
 *   node packages/guest/test/protocols/record.ts <directory of the guest bundle>
 */
import { execFileSync } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { duplexPair } from "node:stream";
import { openImageStore } from "@hibernaut/images/open";
import { MachineFiles } from "@hibernaut/machines/files";
import { QemuHypervisor } from "../../../hypervisor/src/qemu/index.ts";
import { newMachineId } from "../../../machines/src/identity.ts";
import { UserNetwork } from "../../../network/src/user.ts";
import { dataFolder } from "../../../platform/test/helpers/qemu-world.ts";
import { packSmallApp, SMALL_APP } from "../../../platform/test/helpers/small-app/image.ts";
import { readBundle } from "../../src/bundles.ts";
import { FrameReader, FrameType } from "../../src/frame.ts";
import { decodeHello } from "../../src/hello.ts";
import { type RecordedFrame, type Recording, recorded, tell } from "./story.ts";

const BOOT_MS = 120_000;

const folder = await dataFolder();
try {
  await packSmallApp();
  const files = new MachineFiles(folder.path, 64);
  await mkdir(files.machineRoot);
  const image = await (await openImageStore({ dataDir: folder.path })).ensure(SMALL_APP);
  const machineId = newMachineId();
  await files.prepare(machineId);
  await files.freshLayer(machineId);
  const { layer, memory, run, console: consoleLog } = files.paths(machineId);
  const network = new UserNetwork();
  const plug = await network.attach({ id: machineId, app: "app", address: network.allocate(new Set()) }, [8080]);
  const version = execFileSync("qemu-system-x86_64", ["--version"], { encoding: "utf8" });
  const hypervisor = new QemuHypervisor({
    program: "qemu-system-x86_64",
    version,
    accelerator: "tcg",
    runRoot: files.runRoot,
    machineRoot: files.machineRoot,
  });
  const spec = {
    machineId,
    cpus: 1,
    memoryMb: 128,
    bundle: await readBundle(process.argv[2] ?? ""),
    image: image.rootfs,
    layer,
    volumes: [],
    memory,
    runDir: run,
    consoleLog,
    network: plug,
  };
  const vmm = await hypervisor.boot(spec, AbortSignal.timeout(BOOT_MS));
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
      network: plug.guest,
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
  await folder.dispose();
}

/** A padding frame is 64 KB of zeros, and only its type matters. */
function withoutPadding(frame: RecordedFrame): RecordedFrame {
  return frame.type === FrameType.pad ? { ...frame, payload: "" } : frame;
}
