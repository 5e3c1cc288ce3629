/** What all benches share, and that the proxy's bench still fits the proxy. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { environment } from "../../../../bench/lib/record.mjs";
import { median, percentile, round, summary } from "../../../../bench/lib/stats.mjs";
import { Servers } from "../../../../bench/proxy/servers.mjs";
import { ask } from "../helpers/proxied.ts";
import { tempFolder } from "../helpers/temp.ts";

test.each([
  [[3], 3],
  [[5, 1, 3], 3],
  [[4, 1, 3, 2], 2.5],
  [[10, 9, 100], 10],
  [[], Number.NaN],
])("the median of %j is %d", (samples, expected) => {
  expect(median(samples)).toBe(expected);
});

describe("percentile", () => {
  const hundred = Array.from({ length: 100 }, (_, index) => 100 - index);

  test.each([
    [0, 1],
    [0.5, 50],
    [0.9, 90],
    [0.901, 91],
    [1, 100],
  ])("%d of 1 to 100 is %d", (part, expected) => {
    expect(percentile(hundred, part)).toBe(expected);
  });

  test("is always a sample, and NaN without any", () => {
    expect(percentile([1, 2], 0.5)).toBe(1);
    expect(percentile([7], 0.9)).toBe(7);
    expect(percentile([], 0.9)).toBeNaN();
  });
});

test("a summary has median and spread, and leaves the samples in their order", () => {
  const samples = [3.3, 1.1, 2.2, 4.444];
  expect(summary(samples, 1)).toEqual({ n: 4, min: 1.1, median: 2.8, p90: 4.444, max: 4.444 });
  expect(samples).toEqual([3.3, 1.1, 2.2, 4.444]);
  expect(round(2.7549)).toBe(2.75);
});

test("a record says when, at which commit and on what it was measured", () => {
  const { date, commit, host, node } = environment();
  expect(Date.now() - Date.parse(date)).toBeLessThan(60_000);
  // Null where the sources are not in a Git repository, such as in an unpacked archive.
  expect(commit ?? "0".repeat(40)).toMatch(/^[0-9a-f]{40}(-dirty)?$/);
  expect(host.cpus).toBeGreaterThan(0);
  expect(node).toBe(process.version);
});

test.each(["hibernaut", "engine"])("bench:proxy: the role %s forwards requests to the app", async (role) => {
  const app = createServer((_request, response) => response.end("from the app")).listen(0, "127.0.0.1");
  await once(app, "listening");
  const servers = new Servers(await tempFolder("bench"));
  onTestFinished(() => {
    servers.close();
    app.closeAllConnections();
    app.close();
  });
  const { port } = await servers.proxy(role, 0, (app.address() as AddressInfo).port);
  const answer = await ask({ proxyUrl: `http://127.0.0.1:${port}`, app: "bench" });
  expect({ status: answer.status, text: answer.text }).toEqual({ status: 200, text: "from the app" });
});
