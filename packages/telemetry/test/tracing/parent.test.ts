/** What a client may send as `traceparent`, and what the app gets. */
import { expect, test } from "vitest";
import { parentIn, parseTraceparent, traceparentOf, withTraceparent } from "../../src/tracing/parent.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";
const field = (name: string, value: string) => ({ name, key: name.toLowerCase(), value });

test.each([
  [`00-${TRACE}-${SPAN}-01`, 1],
  [`00-${TRACE}-${SPAN}-00`, 0],
  // Further flags are not ours, and a later version may say more.
  [`00-${TRACE}-${SPAN}-03`, 1],
  [`01-${TRACE}-${SPAN}-01-more`, 1],
  [` 00-${TRACE}-${SPAN}-01 `, 1],
])("%s is a parent with the flag %d", (value, traceFlags) => {
  expect(parseTraceparent(value)).toEqual({ traceId: TRACE, spanId: SPAN, traceFlags, isRemote: true });
});

test.each([
  "",
  "00",
  `00-${TRACE}-${SPAN}`,
  `00-${TRACE}-${SPAN}-01-more`,
  `ff-${TRACE}-${SPAN}-01`,
  `00-${"0".repeat(32)}-${SPAN}-01`,
  `00-${TRACE}-${"0".repeat(16)}-01`,
  `00-${TRACE.toUpperCase()}-${SPAN}-01`,
  `00-${TRACE}-${SPAN}-0g`,
])("%j is not a parent", (value) => {
  expect(parseTraceparent(value)).toBeUndefined();
});

test("two of them are none", () => {
  const one = field("Traceparent", `00-${TRACE}-${SPAN}-01`);
  expect(parentIn([one])?.traceId).toBe(TRACE);
  expect(parentIn([one, one])).toBeUndefined();
  expect(parentIn([])).toBeUndefined();
});

test("the app gets another one; a `tracestate` stays with the trace that it belongs to", () => {
  const fields = [field("Accept", "*/*"), field("traceparent", "old"), field("tracestate", "a=1")];
  const value = traceparentOf({ traceId: TRACE, spanId: SPAN, traceFlags: 1 });
  expect(value).toBe(`00-${TRACE}-${SPAN}-01`);
  expect(withTraceparent(fields, value, true)).toEqual([fields[0], fields[2], field("traceparent", value)]);
  expect(withTraceparent(fields, value, false)).toEqual([fields[0], field("traceparent", value)]);
});
