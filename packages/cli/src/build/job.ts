/** What every builder gets, and what it makes. */
import type { Folder } from "../appfile/folder.ts";
import type { Context } from "../context.ts";
import type { Ignore } from "./ignore.ts";
import type { Layer } from "./layer.ts";
import type { ImageSettings } from "./layout.ts";
import type { Place } from "./place.ts";

/** How a build tells what it does. */
export type Report = Pick<Context, "progress" | "say" | "warn">;

export interface Job {
  folder: Folder;
  place: Place;
  ignore: Ignore;
  port: number;
  /** Whether the app file says what every machine runs, so that the image need not. */
  commandNamed: boolean;
  /** Whether to make everything again. */
  fresh: boolean;
  report: Report;
  signal: AbortSignal;
}

/** The layers of an image, lowest first, and how it is started. */
export interface Made {
  layers: Layer[];
  settings: ImageSettings;
}

/** The settings that the images of all our builders have in common. */
export function settingsFor(
  command: readonly string[],
  { port, path = [], env = {} }: { port: number; path?: readonly string[]; env?: Record<string, string> },
): ImageSettings {
  const variables = { PATH: [...path, "/usr/local/bin", "/usr/bin", "/bin"].join(":"), PORT: String(port), ...env };
  return {
    User: "app",
    ExposedPorts: { [`${port}/tcp`]: {} },
    Env: Object.entries(variables).map(([name, value]) => `${name}=${value}`),
    // In the command and not in an entry point: [processes] of an app file replace it as a whole.
    Cmd: [...command],
    WorkingDir: "/app",
  };
}
