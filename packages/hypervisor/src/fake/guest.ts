/** A fake guest: speaks the agent's protocol and counts requests, like the counter app. */
import { randomUUID } from "node:crypto";
import { constants } from "node:os";
import type { Duplex } from "node:stream";
import { CURRENT_PROTOCOL } from "@hibernaut/domain/agent-protocol";
import {
  decodeRecords,
  encodeFrame,
  encodeListeners,
  type Frame,
  FrameReader,
  FrameType,
  HelloOffset,
  isLoopback,
  Key,
  type Listener,
  milliseconds,
  nanoseconds,
} from "@hibernaut/guest";

/** Offset in the `awake` payload of how long the guest was paused, if that is known. */
const PAUSED_AT = 80;
/** The agent distrusts a clock that would be further behind that message, or ahead of it. */
const CLOCK_BEHIND_MS = 20;
const MESSAGE_LATE_MS = 1000;

/** What is in the memory of a fake guest. */
export interface FakeGuestState {
  nonce: string;
  count: number;
  /** The machine that the guest takes itself for. Agents before protocol 5 do not look. */
  machineId?: string;
  hostname: string;
  /** The environment that the guest was configured with. */
  env: Record<string, string>;
  phase: 0 | 1 | 2;
  ready: boolean;
  exit: { code: number; signal: number; oom: boolean };
  /** Guest clock minus host clock, in milliseconds. */
  clockOffsetMs: number;
  /** The guest's clock while it is paused. */
  stoppedClockMs?: number;
}

/** A command as a fake guest reads it. */
export interface FakeCommand {
  /** What the agent does itself. Undefined for a program. */
  task: string | undefined;
  args: string[];
}

/** What a fake guest does with a command, where it does something else than echo its input. */
export interface FakeAnswer {
  /** The process that begins. Default: none is told of. */
  pid?: number;
  output?: Buffer;
  ends: "at once" | "with its input" | "when killed";
  /** Default: 0. */
  code?: number;
}

/** One fake guest with its app. */
export class FakeGuest {
  /** The files that were written before its app started, by path. Empty in a resumed guest, which is not configured. */
  readonly files: Record<string, { mode: string; text: string }> = {};
  /** Its swap in MB, likewise. */
  swapMb = 0;
  /** The disks and paths of its volumes, likewise. */
  readonly volumes: string[] = [];
  state: FakeGuestState = {
    nonce: randomUUID(),
    count: 0,
    machineId: "",
    hostname: "",
    env: {},
    phase: 0,
    ready: false,
    exit: { code: 0, signal: 0, oom: false },
    clockOffsetMs: 0,
  };
  /** The environment that the guest was configured with, now or before it slept. */
  get env(): Record<string, string> {
    return this.state.env;
  }

  /** The app ends with code 1 as soon as it is started. */
  crashes = false;
  /** It does not take the identity that it is told. */
  refusesToBecome = false;
  /** Its app exits at no other signal than SIGKILL. */
  deaf = false;
  /** Its agent does nothing about a stop: whatever is in it has taken the guest over. */
  deafToAll = false;
  /** How it was asked to stop: signals by number, and how long until SIGKILL. */
  readonly asked: { signal: number; graceMs: number }[] = [];
  /** Where the app listens. Undefined when it listens where it should. */
  listening: Listener[] | undefined;
  /** Where the app listens whatever ports it should listen on. Undefined when it does what it should. */
  stubborn: Listener[] | undefined;
  /** The ports that it should listen on. */
  readonly #ports: number[] = [];
  /** What it does with commands. Where this returns undefined, each is `cat`. */
  answer: (command: FakeCommand) => FakeAnswer | undefined = () => undefined;
  /** Commands that were answered and have not ended, by their streams. */
  readonly #answered = new Map<number, FakeAnswer>();
  /** The CPUs are stopped: nothing is answered until `resume`. */
  #paused = false;
  #channel: Duplex | undefined;
  #pending: Frame[] = [];
  #quiesced = false;
  /** The file whose content is arriving. */
  #file: { mode: string; text: string } | undefined;
  readonly #powerOff: () => void;
  /** The serial number of its writable layer: the machine that it is. */
  readonly #machineId: string;

  constructor(machineId: string, powerOff: () => void) {
    this.#machineId = machineId;
    this.state.machineId = machineId;
    this.#powerOff = powerOff;
  }

  /** Whether its memory is another machine's, and does not know yet. */
  get foreign(): boolean {
    const { machineId = this.#machineId } = this.state;
    return machineId !== this.#machineId;
  }

  connect(channel: Duplex): void {
    this.#channel?.destroy();
    this.#channel = channel;
    const reader = new FrameReader();
    channel.on("error", () => {});
    channel.on("data", (chunk: Buffer) => {
      this.#pending.push(...reader.push(chunk));
      this.#work();
    });
  }

  disconnect(): void {
    this.#channel?.destroy();
  }

  pause(): void {
    this.#paused = true;
    this.state.stoppedClockMs ??= this.#clockMs();
  }

  resume(): void {
    this.#paused = false;
    this.state.clockOffsetMs = this.#clockMs() - Date.now();
    delete this.state.stoppedClockMs;
    this.#work();
  }

  /** Changes where the app listens. Without a list, it listens where it should. */
  listen(listening?: Listener[]): void {
    this.listening = listening;
    if (listening !== undefined) return this.#reportListeners();
    this.state = { ...this.state, ready: true };
    this.#send(FrameType.ready);
  }

  /** Whether the app is frozen and its disks are flushed. */
  get quiet(): boolean {
    return this.#quiesced;
  }

  /** The app's answer to a request. Undefined while the guest is paused. */
  request(): { nonce: string; count: number } | undefined {
    if (this.#paused || this.state.phase !== 1 || this.foreign) return undefined;
    this.state.count += 1;
    return { nonce: this.state.nonce, count: this.state.count };
  }

  /** The app prints a line. */
  print(line: string, stream: "stdout" | "stderr" = "stdout"): void {
    this.#send(FrameType.log, Buffer.from(`${line}\n`), stream === "stdout" ? 1 : 2);
  }

  /** The app ends by itself. */
  exit(code: number, { signal = 0, oom = false } = {}): void {
    if (this.state.phase === 2) return;
    this.state = { ...this.state, phase: 2, exit: { code, signal, oom } };
    if (!this.#quiesced) this.#send(FrameType.exit, this.#exitPayload());
  }

  #clockMs(): number {
    return this.state.stoppedClockMs ?? Date.now() + this.state.clockOffsetMs;
  }

  #work(): void {
    while (!this.#paused && this.#pending.length > 0) this.#handle(this.#pending.shift() as Frame);
  }

  #handle(frame: Frame): void {
    const { type, payload, stream } = frame;
    if (this.#isAnswered(frame)) return;
    // Every command is `cat`: it echoes its input and ends with it, or at once when it has no input.
    if (type === FrameType.exec && payload.includes(NO_PROGRAM)) this.#send(FrameType.execExit, noProgram(), stream);
    else if (type === FrameType.exec && !hasInput(payload)) this.#send(FrameType.execExit, Buffer.alloc(9), stream);
    if (type === FrameType.data) this.#send(FrameType.data, payload, stream);
    // Credit that the other side grants is granted back, so the command never has more input than it may.
    if (type === FrameType.credit) this.#send(FrameType.credit, payload, stream);
    if (type === FrameType.end) this.#send(FrameType.execExit, Buffer.alloc(9), stream);
    if (type === FrameType.helloRequest) this.#hello();
    if (type === FrameType.ping) this.#send(FrameType.pong, payload);
    if (type === FrameType.set) this.#configure(payload);
    if (type === FrameType.run) {
      const { stubborn } = this;
      const isReached = (port: number) => stubborn?.some((one) => one.port === port && !isLoopback(one)) ?? true;
      if (!this.#ports.every(isReached)) this.listening = stubborn;
      this.state = { ...this.state, phase: 1, ready: !this.crashes && this.listening === undefined };
      this.#send(FrameType.started, Buffer.alloc(4));
      if (this.crashes) this.exit(1);
      else if (this.state.ready) this.#send(FrameType.ready);
      this.#reportListeners();
    }
    if (type === FrameType.quiesce) {
      this.#send(FrameType.quiesced, nanoseconds(this.#clockMs()));
      this.#quiesced = true;
    }
    if (type === FrameType.become) {
      if (!this.refusesToBecome) this.state.machineId = this.#machineId;
      this.#send(FrameType.became, Buffer.from([this.refusesToBecome ? 5 : 0, 0, 0, 0, 0]));
    }
    if (type === FrameType.awake && this.foreign)
      this.#send(FrameType.error, Buffer.from("the machine has the memory of another one"));
    else if (type === FrameType.awake) {
      this.#quiesced = false;
      this.state.clockOffsetMs = wallAfter(payload, this.#clockMs()) - Date.now();
      this.#send(FrameType.awoken, Buffer.concat([nanoseconds(this.#clockMs()), Buffer.alloc(1)]));
      this.#reportListeners();
    }
    if (type === FrameType.stop) this.#stop(payload.readUInt32LE(0), payload.readUInt32LE(4));
  }

  #stop(signal: number, graceMs: number): void {
    this.asked.push({ signal, graceMs });
    const { SIGKILL, SIGWINCH } = constants.signals;
    if (this.deafToAll) return;
    const isKilled = signal === SIGKILL || graceMs === 0;
    if ((this.deaf || signal === SIGWINCH) && !isKilled) return;
    this.exit(0);
    setImmediate(this.#powerOff);
  }

  /** Whether a frame belongs to a command that is answered as the test says. */
  #isAnswered({ type, payload, stream }: Frame): boolean {
    const answer = type === FrameType.exec ? this.answer(commandOf(payload)) : this.#answered.get(stream);
    if (answer === undefined) return false;
    const { pid, output, ends, code = 0 } = answer;
    const isOver = ends === "at once" || (ends === "with its input" && type === FrameType.end);
    if (type === FrameType.exec) {
      this.#answered.set(stream, answer);
      if (pid !== undefined) this.#send(FrameType.execStarted, uint32(pid), stream);
    }
    // It reads whatever comes, and says so later, as over a real channel.
    if (type === FrameType.data) setImmediate(() => this.#send(FrameType.credit, uint32(payload.length), stream));
    if (output !== undefined && (isOver || (type === FrameType.exec && ends === "when killed")))
      this.#send(FrameType.data, output, stream);
    if (isOver) this.#send(FrameType.execExit, Buffer.concat([uint32(code), Buffer.alloc(5)]), stream);
    if (type === FrameType.signal)
      this.#send(FrameType.execExit, Buffer.concat([uint32(0), payload, Buffer.alloc(1)]), stream);
    if (isOver || type === FrameType.signal || type === FrameType.reset) this.#answered.delete(stream);
    return true;
  }

  #configure(payload: Buffer): void {
    for (const [key, value] of decodeRecords(payload)) {
      if (key === Key.volume) this.volumes.push(value.toString("utf8"));
      if (key === Key.swap) this.swapMb = value.readUInt32LE();
      if (key === Key.file) this.#beginFile(value.toString("utf8"));
      if (key === Key.fileData && this.#file !== undefined) this.#file.text += value.toString("utf8");
      if (key === Key.port) this.#ports.push(Number(value.toString("utf8")));
      if (key === Key.hostname) this.state.hostname = value.toString("utf8");
      if (key !== Key.env) continue;
      const line = value.toString("utf8");
      const at = line.indexOf("=");
      this.env[line.slice(0, at)] = line.slice(at + 1);
    }
  }

  #beginFile(record: string): void {
    const at = record.indexOf(" ");
    this.#file = { mode: record.slice(0, at), text: "" };
    this.files[record.slice(at + 1)] = this.#file;
  }

  #hello(): void {
    this.#quiesced &&= this.foreign;
    const payload = Buffer.alloc(HelloOffset.version);
    payload.writeUInt32LE(CURRENT_PROTOCOL, HelloOffset.protocol);
    payload[HelloOffset.phase] = this.state.phase;
    payload[HelloOffset.ready] = this.state.ready ? 1 : 0;
    this.#exitPayload().copy(payload, HelloOffset.exit);
    this.#send(FrameType.hello, Buffer.concat([payload, Buffer.from("fake")]));
    this.#reportListeners();
  }

  #reportListeners(): void {
    if (this.state.phase === 1 && !this.state.ready)
      this.#send(FrameType.listening, encodeListeners(this.listening ?? []));
  }

  #exitPayload(): Buffer {
    const payload = Buffer.alloc(9);
    payload.writeUInt32LE(this.state.exit.code, 0);
    payload.writeUInt32LE(this.state.exit.signal, 4);
    payload[8] = this.state.exit.oom ? 1 : 0;
    return payload;
  }

  #send(type: number, payload?: Buffer, stream?: number): void {
    if (this.#channel?.writable) this.#channel.write(encodeFrame(type, payload, stream));
  }
}

/** The one program that fake guests don't have. */
const NO_PROGRAM = "no-such-program";

/** The agent's answer for a command that could not be started. */
function noProgram(): Buffer {
  const head = Buffer.alloc(9);
  head.writeUInt32LE(127, 0);
  head[8] = 2;
  return Buffer.concat([head, Buffer.from("the command could not be run: No such file or directory")]);
}

function commandOf(payload: Buffer): FakeCommand {
  const records = decodeRecords(payload).map(([key, value]) => [key, value.toString("utf8")] as const);
  return {
    task: records.find(([key]) => key === Key.task)?.[1],
    args: records.filter(([key]) => key === Key.arg).map(([, value]) => value),
  };
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

/** Whether a command has an input. */
function hasInput(records: Buffer): boolean {
  return decodeRecords(records).some(([key]) => key === Key.input);
}

/** The clock that a guest sets when it continues, computed like the agent's `wall_after`. */
function wallAfter(payload: Buffer, clockMs: number): number {
  const sent = milliseconds(payload);
  const corrected = payload.length > PAUSED_AT ? clockMs + milliseconds(payload.subarray(PAUSED_AT)) : sent;
  return corrected >= sent - CLOCK_BEHIND_MS && corrected <= sent + MESSAGE_LATE_MS ? corrected : sent;
}
