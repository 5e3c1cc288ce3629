/** The agent is written in C and its counterpart here in TypeScript: what both must agree on is read from the headers. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { CURRENT_PROTOCOL } from "@hibernaut/domain/agent-protocol";
import { MachineConfig } from "@hibernaut/domain/config";
import { describe, expect, test } from "vitest";
import { CopyExit } from "../../machines/src/copy-failure.ts";
import { ENTROPY_BYTES } from "../src/agent.ts";
import { CommandEnd } from "../src/command.ts";
import { STREAM_WINDOW } from "../src/credit.ts";
import { encodeFrame, FrameType, HEADER, MAGIC, MAX_PAYLOAD } from "../src/frame.ts";
import { EXIT_BYTES, ExitOffset, HelloOffset, PHASES } from "../src/hello.ts";
import { LISTENER_BYTES } from "../src/listening.ts";
import { AppTaskExit, FsExit, TASK_UNKNOWN } from "../src/protocol.ts";
import { Key, MAX_LABEL } from "../src/records.ts";
import { FIRST_COMMAND, KeptFlag, KeptOffset, MOST_CONNECTIONS, MOST_KEPT } from "../src/streams.ts";

const AGENT = join(import.meta.dirname, "../agent");

/** A file of the agent, without comments. */
function source(file: string): string {
  return readFileSync(join(AGENT, file), "utf8").replaceAll(/\/\*[^]*?\*\//g, "");
}

/** The numbers of an enum by name. */
function enumOf(file: string, name: string): Record<string, number> {
  const body = new RegExp(`enum ${name} \\{([^}]*)\\}`).exec(source(file))?.[1];
  if (body === undefined) throw new Error(`${file} has no enum ${name}`);
  let next = 0;
  const entries = body
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "")
    .map((entry): [string, number] => {
      const [key = "", value] = entry.split(/\s*=\s*/);
      const number = value === undefined ? next : Number(value);
      if (!Number.isInteger(number)) throw new Error(`${file}: ${entry} is not understood`);
      next = number + 1;
      return [key, number];
    });
  return Object.fromEntries(entries);
}

/** The value of a `#define`. */
function defined(file: string, name: string): number {
  const value = new RegExp(`#define ${name} (\\d+)u?\\s`).exec(source(file))?.[1];
  if (value === undefined) throw new Error(`${file} does not define ${name} as a number`);
  return Number(value);
}

/** Names as they are here: `F_START_FAILED` becomes `startFailed`. */
function renamed(numbers: Record<string, number>, prefix: string): Record<string, number> {
  return Object.fromEntries(
    Object.entries(numbers).map(([name, number]) => [
      name
        .slice(name.startsWith(prefix) ? prefix.length : 0)
        .toLowerCase()
        .replaceAll(/_(\w)/g, (_all, letter: string) => letter.toUpperCase()),
      number,
    ]),
  );
}

test("an enum and a define are read as the compiler reads them", () => {
  expect(enumOf("main.c", "phase")).toEqual({ WAITING: 0, RUNNING: 1, ENDED: 2 });
  expect(enumOf("frame.h", "hello_offset").HELLO_READY).toBe(5);
  expect(Object.keys(enumOf("frame.h", "frame_type")).length).toBeGreaterThan(20);
  expect(defined("streams.h", "STREAMS_MAX")).toBe(128);
});

describe("frames", () => {
  test("have the same types", () => {
    expect(FrameType).toEqual(renamed(enumOf("frame.h", "frame_type"), "F_"));
  });

  test("have the same layout", () => {
    expect(HEADER).toBe(defined("frame.h", "FRAME_HEADER"));
    expect(MAX_PAYLOAD).toBe(defined("frame.h", "FRAME_MAX_PAYLOAD"));
    const characters = [...(/MAGIC\[4\] = \{([^}]*)\}/.exec(source("frame.c"))?.[1] ?? "").matchAll(/'(.)'/g)];
    expect(MAGIC.toString("latin1")).toBe(characters.map(([, character]) => character).join(""));
    expect(encodeFrame(FrameType.pad)).toHaveLength(HEADER);
  });
});

describe("payloads", () => {
  test("of F_HELLO and F_EXIT have the same fields", () => {
    expect(HelloOffset).toEqual(renamed(enumOf("frame.h", "hello_offset"), "HELLO_"));
    const { bytes, ...exit } = renamed(enumOf("frame.h", "exit_offset"), "EXIT_");
    expect([ExitOffset, EXIT_BYTES]).toEqual([exit, bytes]);
    expect(HelloOffset.exit + EXIT_BYTES).toBeLessThanOrEqual(HelloOffset.dropped);
  });

  test("of F_HELLO name the same phases and protocol", () => {
    const phases = Object.entries(enumOf("main.c", "phase"));
    expect(phases.map(([name, number]) => [name.toLowerCase(), number])).toEqual(
      PHASES.map((phase, number) => [phase, number]),
    );
    expect(CURRENT_PROTOCOL).toBe(defined("frame.h", "PROTOCOL"));
  });

  test("of F_AWAKE have room for the clock, the session and the randomness", () => {
    const time = 8;
    const session = 8;
    expect(renamed(enumOf("frame.h", "awake_offset"), "AWAKE_")).toEqual({
      clock: 0,
      session: time,
      entropy: time + session,
      stood: time + session + ENTROPY_BYTES,
      carrier: 88,
      apps: 96,
      inward: 104,
    });
  });

  test("of F_SET and F_EXEC have the same keys", () => {
    expect(Key).toEqual(renamed(enumOf("config.h", "config_key"), "C_"));
  });

  test("of F_KEPT have the same fields and flags", () => {
    expect(KeptOffset).toEqual(renamed(enumOf("frame.h", "kept_offset"), "KEPT_"));
    expect(KeptFlag.onTerminal).toBe(defined("frame.h", "KEPT_ON_TERMINAL"));
    expect(KeptFlag.hasInput).toBe(defined("frame.h", "KEPT_HAS_INPUT"));
  });

  test("of F_EXEC_EXIT have the same exit codes for copies", () => {
    expect(CopyExit).toEqual(renamed(enumOf("copy.h", "copy_exit"), "COPY_"));
  });

  test("of F_EXEC_EXIT have the same exit codes for files", () => {
    expect(FsExit).toEqual(renamed(enumOf("paths.h", "fs_exit"), "FS_"));
  });

  test("of F_EXEC_EXIT have the same exit codes for signals, and for a task that an older agent does not know", () => {
    expect(AppTaskExit).toEqual(renamed(enumOf("running.h", "app_task_exit"), "APP_TASK_"));
    expect(TASK_UNKNOWN).toBe(defined("task.h", "TASK_UNKNOWN"));
  });

  test("of F_EXEC_EXIT and F_LISTENING have the same form", () => {
    expect(CommandEnd).toEqual(renamed(enumOf("flow.h", "command_end"), ""));
    expect(LISTENER_BYTES).toBe(defined("listening.h", "LISTENER_BYTES"));
  });
});

describe("limits", () => {
  test("of streams are the same, or stricter in the agent", () => {
    expect(STREAM_WINDOW).toBe(defined("streams.h", "STREAM_WINDOW"));
    expect(FIRST_COMMAND).toBe(defined("streams.h", "FIRST_COMMAND"));
    expect(MOST_KEPT).toBeGreaterThanOrEqual(defined("streams.h", "STREAMS_MAX"));
    expect(MAX_LABEL).toBe(defined("config.h", "CONFIG_MAX_LABEL"));
    expect(MOST_CONNECTIONS).toBeGreaterThanOrEqual(defined("streams.h", "CONNECTIONS_MAX"));
  });

  test("of the configuration allow what the API allows", () => {
    const { services, mounts } = MachineConfig.properties as unknown as Record<string, { maxItems: number }>;
    expect(services?.maxItems).toBeLessThanOrEqual(defined("config.h", "CONFIG_MAX_PORTS"));
    expect(mounts?.maxItems).toBeLessThanOrEqual(defined("config.h", "CONFIG_MAX_VOLUMES"));
  });
});
