/** A hostile guest against the platform's side of the channel, over real sockets. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { connect, createServer as createSocketServer, type Socket } from "node:net";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { CURRENT_PROTOCOL } from "@hibernaut/domain/agent-protocol";
import type { HypervisorIdentity, Vmm } from "@hibernaut/hypervisor";
import { MachineGuest } from "../../../machines/src/guest.ts";
import { GuestEvents } from "../../../machines/src/guest-events.ts";
import { MachineLog } from "../../../machines/src/logs/machine-log.ts";
import { encodeFrame, FrameReader, FrameType } from "../../src/frame.ts";
import { HelloOffset } from "../../src/hello.ts";
import { HostileGuest } from "./generator.ts";

/** About one write of a virtio-serial port. */
const BATCH_BYTES = 64 * 1024;
const MB = 1024 * 1024;

/** Two ends of one real socket. */
export async function socketPair(folder: string, name: string): Promise<[platform: Socket, guest: Socket]> {
  const path = join(folder, `${name}.sock`);
  const server = createSocketServer().listen(path);
  await once(server, "listening");
  const platform = connect(path);
  const [[guest]] = (await Promise.all([once(server, "connection"), once(platform, "connect")])) as [[Socket], unknown];
  server.close();
  for (const end of [platform, guest]) end.on("error", () => {});
  return [platform, guest];
}

/** Returns the bytes of the heap that are in use once garbage is collected. */
export function heapBytes(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  return process.memoryUsage().heapUsed;
}

/** A machine as far as its guest is concerned: everything of the platform's that a guest's bytes reach. */
export class Target {
  readonly inside = new GuestEvents();
  readonly guest: MachineGuest;
  readonly log: MachineLog;
  /** What the platform's own log was told. */
  readonly warnings: string[] = [];
  warned = 0;
  readonly #api: Server;

  constructor(folder: string, name: string) {
    // In the place of the local API: a real HTTP server, which gets connections as the API's does.
    this.#api = createServer((request: IncomingMessage, response: ServerResponse) => {
      request.resume();
      request.on("error", () => {});
      response.end("{}");
    });
    this.inside.streams.onConnection = (connection) => void this.#api.emit("connection", connection);
    const rate = { bytesPerS: MB, linesPerS: 5000 };
    this.log = new MachineLog({
      machine: name,
      folder: join(folder, name),
      maxBytes: MB,
      rate,
      prepare: async () => {},
    });
    const warn = (_fields: unknown, message: string) => {
      this.warned += 1;
      if (this.warnings.length < 100) this.warnings.push(message);
    };
    this.guest = new MachineGuest({
      machineId: name,
      streams: this.inside.streams,
      machineLog: this.log,
      log: { info: warn, warn, error: warn },
      channelTimeoutMs: 5000,
      requireEnded: async () => {},
      listener: { ended() {}, stalled() {}, reachability() {}, unkept() {}, agentFault() {} },
    });
  }

  async attach(channel: Socket): Promise<void> {
    await this.guest.attach(new SocketVmm(channel), [8080]);
  }

  async close(): Promise<void> {
    this.inside.streams.reset("the test is over");
    this.guest.release();
    await this.log.close();
    this.#api.close();
    this.#api.closeAllConnections();
  }
}

/** The part of a VMM that the guest's side of the platform uses. */
class SocketVmm implements Vmm {
  readonly ref = { machineId: "", pid: 0, startTicks: "" };
  readonly identity = {} as HypervisorIdentity;
  readonly exited = new Promise<void>(() => {});
  readonly failure = undefined;
  onStalled = () => {};
  readonly #channel: Socket;

  constructor(channel: Socket) {
    this.#channel = channel;
  }

  openChannel = async () => this.#channel;
  usage = async () => undefined;
  ownMemory = async () => 0;
  threadTimes = async () => undefined;
  comeLast = async () => false;
  state = async () => "running" as const;
  run = async () => {};
  pause = async () => {};
  prepareCapture = async () => {};
  capture = async () => {};
  keepDisks = async () => undefined;
  kill = async () => void this.#channel.destroy();
  release() {
    this.#channel.destroy();
  }
}

/** An F_HELLO that the platform believes. */
export function goodHello(): Buffer {
  const payload = Buffer.alloc(HelloOffset.version);
  payload.writeUInt32LE(CURRENT_PROTOCOL, HelloOffset.protocol);
  payload[HelloOffset.phase] = 1;
  return encodeFrame(FrameType.hello, payload);
}

/** A guest that behaves: it answers what it is asked. */
export function behave(socket: Socket): void {
  const reader = new FrameReader();
  socket.on("data", (chunk) => {
    for (const { type, payload } of reader.push(chunk)) {
      if (type === FrameType.helloRequest) socket.write(goodHello());
      if (type === FrameType.ping) socket.write(encodeFrame(FrameType.pong, payload));
    }
  });
}

/** What the platform asks of the guest while that attacks: it must neither hang nor crash, whatever the answers are. */
async function use(target: Target): Promise<void> {
  const agent = target.guest.live?.agent;
  if (agent === undefined) return;
  const soon = AbortSignal.timeout(50);
  const ignored = () => {};
  for (let count = 0; count < 4; count += 1) {
    const command = agent.streams.run({ args: ["app"], input: true });
    command.stdout.resume();
    command.stderr.resume();
    command.stdin.write("input");
    command.exit.catch(ignored);
    setTimeout(() => command.kill(), 200).unref();
  }
  await Promise.all([agent.hello(soon).catch(ignored), agent.ping(soon).catch(ignored)]);
  await agent.quiesce(AbortSignal.timeout(20)).catch(ignored);
  await agent.awake(AbortSignal.timeout(20)).catch(ignored);
}

/** Sends `frames` frames, as fast as the platform takes them. Calls `at` after every tenth of them. */
export async function attack(
  target: Target,
  guest: Socket,
  { seed, frames, at = async () => {} }: { seed: number; frames: number; at?(tenth: number): Promise<void> },
): Promise<void> {
  const hostile = new HostileGuest(seed);
  const reader = new FrameReader();
  guest.on("data", (chunk) => {
    for (const { type, stream } of reader.push(chunk)) if (type === FrameType.exec) hostile.newest = stream;
  });
  let using: Promise<void> | undefined;
  let tenth = 1;
  while (hostile.made < frames && !guest.destroyed) {
    const parts: Buffer[] = [goodHello()];
    for (let size = 0; size < BATCH_BYTES; ) {
      const part = hostile.next();
      parts.push(part);
      size += part.length;
    }
    using ??= use(target).finally(() => (using = undefined));
    await new Promise<void>((resolve) => guest.write(Buffer.concat(parts), () => resolve()));
    if (hostile.made >= (tenth * frames) / 10) {
      await at(tenth);
      tenth += 1;
    }
  }
  await using;
}
