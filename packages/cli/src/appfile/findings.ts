/** Errors in an app file, and keys that have no effect. */
import type { Path, Position, PositionMap } from "./positions.ts";

/** One error or warning, with its position. */
export interface Finding extends Position {
  /** With an error, the file cannot be used. A warning is about a key that has less effect than it seems. */
  severity: "error" | "warning";
  /** Such as `http_service.auto_stop_machines` or `services[1].ports[0].port`; empty for the whole file. */
  path: string;
  message: string;
}

/** Collects findings while a file is read. */
export class Findings {
  readonly #positions: PositionMap;
  readonly #all: Finding[] = [];

  constructor(positions: PositionMap) {
    this.#positions = positions;
  }

  error(path: Path, message: string): void {
    this.#all.push({ severity: "error", path: pathText(path), message, ...this.#positions.near(path) });
  }

  warning(path: Path, message: string): void {
    this.#all.push({ severity: "warning", path: pathText(path), message, ...this.#positions.near(path) });
  }

  /** In the order of the file. */
  get list(): Finding[] {
    return this.#all.toSorted((a, b) => a.line - b.line || a.column - b.column);
  }
}

/** A path as users write it: `services[0].ports[1].port`, `env."A.B"`. */
export function pathText(path: Path): string {
  let text = "";
  for (const part of path) {
    if (typeof part === "number") text += `[${part}]`;
    else text += `${text === "" ? "" : "."}${/^[\w-]+$/.test(part) ? part : JSON.stringify(part)}`;
  }
  return text;
}

/** `fly.toml:12:3: warning: metrics: ...`, which editors and terminals turn into a link. */
export function findingText({ severity, path, message, line, column }: Finding, file: string): string {
  return `${file}:${line}:${column}: ${severity}: ${path === "" ? "" : `${path}: `}${message}`;
}
