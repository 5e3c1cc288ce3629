/**
 * Reports to the coordinator what a proxy has forwarded between clients and machines. While the platform is away, it is
 * counted and reported later.
 */
import type { Traffic } from "@hibernaut/store";
import type { CoordinatorLink } from "./messages.ts";

/** Traffic is reported together, after this time in milliseconds. A proxy that is killed loses what it did not report. */
const REPORT_MS = 1000;

export class TrafficReporter {
  readonly #link: CoordinatorLink;
  /** One entry for each machine that moved something: bounded by the machines there are. */
  #moved = new Map<string, Traffic>();
  #connected = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(link: CoordinatorLink) {
    this.#link = link;
  }

  /** Counts bytes. Called for every piece of every request. */
  moved(id: string, bytesIn: number, bytesOut: number): void {
    const sum = this.#moved.get(id);
    if (sum === undefined) this.#moved.set(id, { bytesIn, bytesOut });
    else {
      sum.bytesIn += bytesIn;
      sum.bytesOut += bytesOut;
    }
    this.#timer ??= setTimeout(() => this.flush(), REPORT_MS).unref();
  }

  /** The platform is there, and takes reports. */
  connected(): void {
    this.#connected = true;
    this.flush();
  }

  /** The platform is out of reach. */
  disconnected(): void {
    this.#connected = false;
  }

  /** Reports now what would be reported in a moment. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (!this.#connected || this.#moved.size === 0) return;
    const moved = Object.fromEntries(this.#moved);
    this.#moved = new Map();
    this.#link.send({ kind: "traffic", moved });
  }

  /** Reports what is left. */
  close(): void {
    this.flush();
  }
}
