/** What the proxy and the platform tell the tracer, if there is one: traces are off unless someone collects them. */
import type { BootKind } from "@hibernaut/domain/machine";
import type { Operation } from "@hibernaut/domain/operation";

/** A field line of a request's head. */
export interface TracedField {
  readonly name: string;
  readonly key: string;
  readonly value: string;
}

/** What is known of a request when its head is complete. */
export interface TracedRequest {
  readonly method: string;
  /** With the query, which is not part of the trace: it may have secrets. */
  readonly target: string;
  readonly host: string;
  readonly httpVersion: string;
  /** Replaced when the app is to get another `traceparent`. */
  fields: readonly TracedField[];
}

/** Who sent it. */
export interface TracedOrigin {
  readonly requestId: string;
  readonly clientAddress: string;
  readonly secure: boolean;
}

/** A machine that a request was given to. */
export interface TracedLease {
  readonly machineId: string;
  readonly appName: string;
  readonly wake: TracedWake;
  /** Present for a machine of another host, whose proxy gets the request. */
  readonly peer?: { readonly host: string } | undefined;
}

/** How a machine came to answer. */
interface TracedWake {
  readonly kind: "running" | BootKind;
  readonly durationMs: number;
}

/** The spans of one request that is traced. */
export interface RequestTrace {
  /** Returns the `traceparent` for the wake that the request asks for: that of the span in which it waits. */
  wakeParent(): string;
  /** The request begins to wait for a machine. */
  holds(): void;
  /** The request was given to a machine, whether it waited or not. */
  leased(lease: TracedLease): void;
  /** A connection to the machine is being opened. */
  connects(): void;
  /** The connection is open, or could not be opened. */
  connected(error?: unknown): void;
  /** The request is sent to the app, or to the proxy of the host that has the machine, which gets a `traceparent` of this span. */
  forwards(request: TracedRequest, lease: TracedLease): void;
  /** The machine did not answer; another attempt may follow. */
  gaveUp(why: string): void;
  /** The app sends the request on. */
  sentOn(): void;
  /**
   * The request is over. `error` is a stable code; `wake` is how its last machine came to answer, which the proxy of
   * another host says only then.
   */
  ends(outcome: {
    status: number | undefined;
    error: string | undefined;
    appName: string | undefined;
    wake?: TracedWake | undefined;
  }): void;
}

/** The spans of wakes, on the platform's side. */
export interface WakeTraces {
  /** A traced request asks for a start of the machine. */
  asked(machineId: string, parent: string): void;
  /** The platform refuses that. */
  refused(machineId: string): void;
  /** A start or a suspend is over. */
  operation(operation: Operation): void;
}

export interface Tracing {
  /**
   * Begins the trace of a request. Returns undefined for one that is not sampled; the app then gets what the client sent,
   * or is told that the request is not sampled.
   */
  begin(request: TracedRequest, origin: TracedOrigin): RequestTrace | undefined;
  readonly wakes: WakeTraces;
  /** Sends what is left, for as long as that may take. */
  close(): Promise<void>;
}
