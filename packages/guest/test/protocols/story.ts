/** What a platform says to an agent in the life of a machine: told to a real one when it is recorded, and again in tests. */
import type { Duplex } from "node:stream";
import { GuestAgent } from "../../src/agent.ts";
import type { Frame } from "../../src/frame.ts";
import type { CommandExit, GuestConfig, GuestExit, Hello } from "../../src/protocol.ts";

/** One frame as it was recorded. */
export interface RecordedFrame {
  from: "platform" | "agent";
  /** When the platform sent or received it, in milliseconds since 1970. */
  at: number;
  type: number;
  stream: number;
  /** Base64. */
  payload: string;
}

/** A file of this directory. */
export interface Recording {
  protocol: number;
  /** The agent's own version. */
  agent: string;
  frames: RecordedFrame[];
  heard: Heard;
}

/** What the platform understood. */
export interface Heard {
  phases: Hello["phase"][];
  stdout: string;
  /** The command's output and its end; null where the agent has no streams. */
  command: { output: string; exit: CommandExit } | null;
  hooks: boolean;
  clockRight: boolean;
  exit: GuestExit;
}

const WAIT_MS = 60_000;
/** As much as the platform tolerates: see `agent.ts`. */
const CLOCK_OFF_MS = 20;

/** A guest boots, runs an app and a command, sleeps, wakes, is adopted by another platform, and is stopped. */
export async function tell(channel: Duplex, config: GuestConfig): Promise<Heard> {
  const limit = AbortSignal.timeout(WAIT_MS);
  const agent = new GuestAgent(channel);
  let stdout = "";
  const printed = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<GuestExit>();
  agent.onLog = (stream, data) => {
    if (stream === 1) stdout += data.toString();
    if (stdout.includes("\n")) printed.resolve();
  };
  agent.onExit = ended.resolve;
  const { phase: first } = await agent.hello(limit);
  await agent.run(config, limit);
  await agent.ready(limit);
  await printed.promise;
  const command = agent.hasStreams ? await runCommand(agent, config) : null;
  await agent.quiesce(limit);
  const { hooks, clockOffMs } = await agent.awake(limit);
  const { phase: second } = await agent.hello(limit, { resync: true });
  agent.stop(15, 5000);
  const exit = await ended.promise;
  const clockRight = Math.abs(clockOffMs) <= CLOCK_OFF_MS;
  return { phases: [first, second], stdout, command, hooks, clockRight, exit };
}

/** The app's own program, as a command that prints a line and fails. */
async function runCommand(agent: GuestAgent, { args }: GuestConfig): Promise<NonNullable<Heard["command"]>> {
  const command = agent.streams.run({ args: [args[0] ?? "", "--port", "8081", "--say", "a command", "--fail", "3"] });
  const output: Buffer[] = [];
  for (const stream of [command.stdout, command.stderr]) stream.on("data", (chunk: Buffer) => output.push(chunk));
  const exit = await command.exit;
  return { output: Buffer.concat(output).toString(), exit };
}

/** A frame as it is recorded. */
export function recorded(from: RecordedFrame["from"], { type, stream, payload }: Frame): RecordedFrame {
  return { from, at: Date.now(), type, stream, payload: payload.toString("base64") };
}
