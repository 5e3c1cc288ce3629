/** Output that is missing in a machine's log. The log says so at most once per second, however often it happens. */
import type { LogAllowance } from "./allowance.ts";

/** Long enough that reports are few, and that what follows a gap is more than a few lines. */
const REPORT_MS = 1000;

interface LossesOptions {
  allowance: LogAllowance;
  /** Adds a sentence to the log. */
  tell(text: string): void;
}

export class Losses {
  readonly #options: LossesOptions;
  #unread = 0;
  #leftOut = 0;
  #untold = 0;
  #leaving = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: LossesOptions) {
    this.#options = options;
  }

  /** Whether output is left out now, all of it: until the next report, because a line here and there helps nobody. */
  get leaving(): boolean {
    return this.#leaving;
  }

  /** Bytes of the app's output that no report names yet. */
  get untold(): number {
    return this.#untold;
  }

  /** The app printed this many bytes that never arrived. */
  neverArrived(bytes: number): void {
    this.#unread += bytes;
    this.#untold += bytes;
    if (this.#timer === undefined) this.#tell();
    this.#later();
  }

  /** These bytes are not in the log, because the machine prints too much. `byApp` is false for those of hooks. */
  leaveOut(bytes: number, byApp: boolean): void {
    this.#leftOut += bytes;
    if (byApp) this.#untold += bytes;
    this.#later();
  }

  /** There is no room for more. */
  leave(): void {
    this.#leaving = true;
    this.#later();
  }

  /** Tells everything now: nothing follows for a while. */
  settle(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#leaving = false;
    this.#tell();
  }

  #later(): void {
    this.#timer ??= setTimeout(() => this.#due(), REPORT_MS).unref();
  }

  #due(): void {
    this.#timer = undefined;
    this.#tell();
    if (this.#leaving && !this.#options.allowance.open) this.#later();
    else this.#leaving = false;
  }

  #tell(): void {
    const { allowance, tell } = this.#options;
    const [unread, leftOut] = [this.#unread, this.#leftOut];
    this.#unread = this.#leftOut = this.#untold = 0;
    if (unread > 0) tell(`${unread} bytes of output were lost while nobody read them.`);
    const { bytesPerS, linesPerS } = allowance.rate;
    const most = `${Math.round(bytesPerS / MB)} MB or ${linesPerS} lines per second`;
    if (leftOut > 0) tell(`${leftOut} bytes of output were lost: the log takes ${most} from a machine.`);
  }
}

const MB = 1024 * 1024;
