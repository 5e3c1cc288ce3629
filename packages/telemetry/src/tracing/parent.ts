/** `traceparent`, as W3C Trace Context has it: https://www.w3.org/TR/trace-context/. Pure. */
import type { SpanContext } from "@opentelemetry/api";
import type { TracedField } from "./contract.ts";

/** A later version may have more after the flags. Version ff does not exist. */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const SAMPLED = 1;

/** Returns what a `traceparent` says. Undefined for one that is not valid. */
export function parseTraceparent(value: string): SpanContext | undefined {
  const [, version, traceId = "", spanId = "", flags = "", more] = TRACEPARENT.exec(value.trim()) ?? [];
  if (version === undefined || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  if (version === "00" && more !== undefined) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & SAMPLED, isRemote: true };
}

/** Returns what the `traceparent` of a request says. Undefined without one that is valid, and with several. */
export function parentIn(fields: readonly TracedField[]): SpanContext | undefined {
  const found = fields.filter(({ key }) => key === "traceparent");
  return found.length === 1 ? parseTraceparent(found[0]?.value ?? "") : undefined;
}

/** Returns the `traceparent` of a span. */
export function traceparentOf({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-0${traceFlags & SAMPLED}`;
}

/**
 * Returns the fields with this `traceparent`.
 *
 * @param keepState whether the `tracestate` belongs to it: it goes with a `traceparent` that was not valid
 */
export function withTraceparent(fields: readonly TracedField[], value: string, keepState: boolean): TracedField[] {
  const others = fields.filter(({ key }) => key !== "traceparent" && (keepState || key !== "tracestate"));
  return [...others, { name: "traceparent", key: "traceparent", value }];
}
