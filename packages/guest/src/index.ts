/** What other packages may use. */
export { GuestAgent } from "./agent.ts";
export type { GuestCommand } from "./command.ts";
export { type AgentEntry, EntryFields, MOST_ATTRIBUTES } from "./entries.ts";
export { GuestError } from "./error.ts";
export { encodeFrame, type Frame, FrameReader, FrameType } from "./frame.ts";
export { HelloOffset } from "./hello.ts";
export { encodeListeners, isLoopback, type Listener, listenerText } from "./listening.ts";
export {
  AppTaskExit,
  type CommandExit,
  type CommandSpec,
  type FileTaskName,
  FORKS_PROTOCOL,
  FsExit,
  type GuestConfig,
  type GuestExit,
  type GuestIdentity,
  SANDBOX_PROTOCOL,
  TASK_UNKNOWN,
  TASKS_PROTOCOL,
  type TaskName,
} from "./protocol.ts";
export { decodeRecords, encodeCommand, Key, milliseconds, nanoseconds } from "./records.ts";
export { GuestStreams } from "./streams.ts";
