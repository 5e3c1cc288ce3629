/**
 * A reporter for Node's test runner: a line for each test as soon as it has ended, because these tests take minutes, and
 * why it failed. The last line counts. Plain JavaScript, which runs as it is in the outer machine.
 */
import { inspect } from "node:util";

/** @param {AsyncIterable<{ type: string, data: any }>} events */
export default async function* report(events) {
  /** @type {string[]} */
  const path = [];
  let [passed, failed] = [0, 0];
  for await (const { type, data } of events) {
    if (type === "test:dequeue") path.splice(data.nesting, path.length, data.name);
    if (type === "test:stderr" || type === "test:stdout") yield data.message;
    if (type !== "test:complete" || data.skip !== undefined) continue;
    const { details } = data;
    const { passed: fine, error, type: kind } = details;
    // A suite counts only with a fault of its own, in what prepares it or cleans up after it.
    if (kind === "suite" && (fine || error?.failureType === "subtestsFailed")) continue;
    if (fine) passed += 1;
    else failed += 1;
    const name = [...path.slice(0, data.nesting), data.name].join(" > ");
    yield `${fine ? "ok  " : "FAIL"} ${(details.duration_ms / 1000).toFixed(1).padStart(6)} s  ${name}\n`;
    if (!fine) yield `${inspect(error?.cause ?? error)}\n`;
  }
  yield `${passed} passed, ${failed} failed\n`;
}
