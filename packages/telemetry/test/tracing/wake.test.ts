/** Wakes in traces: each belongs to the request that asked for it, and to no other. */
import type { Operation } from "@hibernaut/domain/operation";
import { expect, onTestFinished, test, vi } from "vitest";
import { Collector } from "../../../platform/test/helpers/collector.ts";
import { startTracing } from "../../src/tracing/otlp.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";
const PARENT = `00-${TRACE}-${SPAN}-01`;

async function wakes() {
  const collector = await Collector.open();
  onTestFinished(() => collector.close());
  const url = `${collector.url}/v1/traces`;
  const tracing = startTracing({ url, ratio: 1, resource: {}, count() {} });
  /** The spans that were sent, once everything is over. */
  const sent = async () => {
    await tracing.close();
    return collector.spans;
  };
  return { ...tracing, sent };
}

function operation(more: Partial<Operation> = {}): Operation {
  const ended = performance.now();
  const steps = [
    { name: "check" as const, began: ended - 30, ended: ended - 20 },
    { name: "awake" as const, began: ended - 20, ended },
  ];
  return {
    ...{ type: "start", machineId: "m1", app: "shop", outcome: "ok", kind: "resume", reason: "snapshot" },
    ...{ began: ended - 40, ended, steps },
    ...more,
  };
}

test("a wake has its steps, with the times that they had", async () => {
  const { wakes: traces, sent } = await wakes();
  traces.asked("m1", PARENT);
  traces.operation(operation());
  const spans = await sent();
  expect(spans.map(({ name }) => name).sort()).toEqual(["awake", "check", "wake"]);
  const [wake] = spans.filter(({ name }) => name === "wake");
  expect(wake).toMatchObject({ traceId: TRACE, parentSpanId: SPAN, status: 0 });
  for (const { name, parentSpanId } of spans) if (name !== "wake") expect(parentSpanId).toBe(wake?.spanId);
  const ms = (from: bigint, to: bigint) => Number(to - from) / 1e6;
  expect(ms(wake?.began ?? 0n, wake?.ended ?? 0n)).toBeCloseTo(40, 1);
  const [check] = spans.filter(({ name }) => name === "check");
  expect(ms(wake?.began ?? 0n, check?.began ?? 0n)).toBeCloseTo(10, 1);
  // The wall clock, as the spans of other processes have it.
  expect(Math.abs(Date.now() - Number((wake?.ended ?? 0n) / 1_000_000n))).toBeLessThan(60_000);
});

test("a start that fails says why", async () => {
  const { wakes: traces, sent } = await wakes();
  traces.asked("m1", PARENT);
  const reason = `QEMU did not start: ${"x".repeat(500)}`;
  traces.operation(operation({ outcome: "failed", kind: undefined, reason, steps: [] }));
  const [wake] = await sent();
  expect(wake).toMatchObject({ status: 2, attributes: { "error.type": "failed" } });
  expect(wake?.attributes["hibernaut.reason"]).toBe(reason.slice(0, 200));
});

test("starts that nobody traced, or that the platform refused, leave no span", async () => {
  const { wakes: traces, sent } = await wakes();
  traces.operation(operation());
  traces.asked("m1", PARENT);
  traces.refused("m1");
  traces.operation(operation());
  traces.asked("m1", "nonsense");
  traces.operation(operation());
  expect(await sent()).toEqual([]);
});

test("a request that turns a suspend around has no wake, and a later start is not its own", async () => {
  const { wakes: traces, sent } = await wakes();
  traces.asked("m1", PARENT);
  traces.operation(operation({ type: "suspend", outcome: "cancelled", kind: undefined }));
  traces.operation(operation());
  expect(await sent()).toEqual([]);
});

test("a request that comes while the suspend ends gets the start that follows", async () => {
  const { wakes: traces, sent } = await wakes();
  traces.asked("m1", PARENT);
  traces.operation(operation({ type: "suspend", kind: undefined }));
  traces.operation(operation());
  expect((await sent()).filter(({ name }) => name === "wake")).toHaveLength(1);
});

test("what was asked long ago is forgotten", async () => {
  const { wakes: traces, sent } = await wakes();
  const now = vi.spyOn(performance, "now");
  onTestFinished(() => now.mockRestore());
  const asked = performance.now();
  traces.asked("m1", PARENT);
  now.mockReturnValue(asked + 600_001);
  traces.operation(operation());
  now.mockRestore();
  expect(await sent()).toEqual([]);
});
