/**
 * Preloaded into a process whose memory is measured: on SIGUSR2, it collects its garbage. V8 may leave that for minutes
 * when a process has little to do, and what it still holds cannot be told from what it has forgotten.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc");
process.on("SIGUSR2", () => {
  // "last-resort" also gives the memory back to the host.
  collect({ type: "major", execution: "sync", flavor: "last-resort" });
  const megabytes = Object.entries(process.memoryUsage()).map(
    ([what, bytes]) => `${what} ${Math.round(bytes / 2 ** 20)}`,
  );
  process.stderr.write(`memory in MB after a collection: ${megabytes.join(", ")}\n`);
});
