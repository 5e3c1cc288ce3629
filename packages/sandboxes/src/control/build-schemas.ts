/** The shapes of requests for builds and tags. Fields that are not known are ignored. */
import { CPUS, MEMORY_MB } from "@hibernaut/domain/limits";
import { Type } from "typebox";
import { MOST_ENTRIES_TOLD, MOST_STEPS } from "../build/limits.ts";

const Name = Type.String({ minLength: 1, maxLength: 300 });
const Tags = Type.Array(Type.String({ maxLength: 200 }), { maxItems: 100 });

export const BuildBody = Type.Object({
  name: Type.Optional(Name),
  alias: Type.Optional(Name),
  tags: Type.Optional(Tags),
  cpuCount: Type.Optional(Type.Integer(CPUS)),
  memoryMB: Type.Optional(Type.Integer(MEMORY_MB)),
});

export const BuildParams = Type.Object({ templateID: Name, buildID: Type.String({ minLength: 1, maxLength: 80 }) });
export const FileParams = Type.Object({ templateID: Name, hash: Type.String({ pattern: "^[0-9a-f]{64}$" }) });

const SentStep = Type.Object({
  type: Type.String({ maxLength: 40 }),
  args: Type.Optional(Type.Array(Type.String(), { maxItems: 2000 })),
  filesHash: Type.Optional(Type.String({ maxLength: 200 })),
});

export const StartBody = Type.Object({
  fromImage: Type.Optional(Type.String({ minLength: 1, maxLength: 1024 })),
  fromTemplate: Type.Optional(Name),
  fromImageRegistry: Type.Optional(Type.Unknown()),
  steps: Type.Optional(Type.Array(SentStep, { maxItems: MOST_STEPS })),
  startCmd: Type.Optional(Type.String()),
  readyCmd: Type.Optional(Type.String()),
});

export const StatusQuery = Type.Object({
  logsOffset: Type.Integer({ minimum: 0, maximum: 2 ** 31 - 1, default: 0 }),
  limit: Type.Integer({ minimum: 0, maximum: MOST_ENTRIES_TOLD, default: MOST_ENTRIES_TOLD }),
  level: Type.Optional(
    Type.Union([Type.Literal("debug"), Type.Literal("info"), Type.Literal("warn"), Type.Literal("error")]),
  ),
});

export const AssignBody = Type.Object({ target: Name, tags: Tags });
export const RemoveBody = Type.Object({ name: Name, tags: Tags });
