/** The findings of doctor, for many readers: one examination at a time, and none right after another. */
import { setTimeout as delay } from "node:timers/promises";

/** What one check found. */
export interface Finding {
  name: string;
  status: "ok" | "warn" | "fail";
  /** For people. */
  found: string;
  /** A command that repairs the fault. */
  fix?: string;
}

/** How long an examination is good, in milliseconds: someone who looks again has repaired something in between. */
const KEPT_MS = 5_000;
/** How long a reader waits, in milliseconds. Most checks take no time, and booting a guest to prove KVM takes half a minute. */
const WAIT_MS = 45_000;

interface FindingsOptions {
  /** Makes all checks, one after the other. */
  examine(): AsyncIterable<Finding>;
  waitMs?: number;
  /** Milliseconds of a steady clock. */
  now?(): number;
}

/** An examination, in progress or over. */
interface Examination {
  findings: Finding[];
  over: Promise<void>;
  endedAt: number | undefined;
}

/** Examines the host when a reader asks. */
export class HostFindings {
  readonly #options: FindingsOptions;
  #last: Examination | undefined;

  constructor(options: FindingsOptions) {
    this.#options = options;
  }

  /** Returns what was found. What did not end in time is a finding of its own; the next reader waits for it again. */
  async read(): Promise<Finding[]> {
    const examination = this.#current();
    const waitMs = this.#options.waitMs ?? WAIT_MS;
    const ended = new AbortController();
    const late = delay(waitMs, true, { signal: ended.signal, ref: false }).catch(() => false);
    const isLate = await Promise.race([examination.over.then(() => false), late]);
    ended.abort();
    return isLate ? [...examination.findings, unfinished(waitMs)] : examination.findings;
  }

  #current(): Examination {
    const last = this.#last;
    const fresh = last?.endedAt === undefined || this.#now() - last.endedAt < KEPT_MS;
    if (last !== undefined && fresh) return last;
    const begun: Examination = { findings: [], over: Promise.resolve(), endedAt: undefined };
    begun.over = this.#examine(begun);
    this.#last = begun;
    return begun;
  }

  async #examine(examination: Examination): Promise<void> {
    try {
      for await (const finding of this.#options.examine()) examination.findings.push(finding);
    } catch (error) {
      examination.findings.push({ name: "doctor", status: "fail", found: `the checks broke off: ${String(error)}` });
    }
    examination.endedAt = this.#now();
  }

  #now(): number {
    return this.#options.now?.() ?? performance.now();
  }
}

function unfinished(waitMs: number): Finding {
  const found = `the other checks have not ended within ${waitMs / 1000} s; they are still running, so ask again`;
  return { name: "doctor", status: "warn", found };
}
