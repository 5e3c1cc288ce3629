/** The flags with which the platform's Node starts. */
import { expect, test } from "vitest";
import { serveFlags } from "../bin/serve-flags.js";

const now = { execArgv: [], cpus: 2 };

test("only the platform has flags, whatever options come first", () => {
  expect(serveFlags(["--json", "serve"], now)).toEqual(["--max-semi-space-size=4", "--v8-pool-size=1"]);
  expect(serveFlags(["machine", "exec", "serve"], now)).toEqual([]);
  expect(serveFlags([], now)).toEqual([]);
});

test("one that has them does not start again, and those of the user count", () => {
  const flags = serveFlags(["serve"], now);
  expect(serveFlags(["serve"], { ...now, execArgv: flags })).toEqual([]);
  expect(serveFlags(["serve"], { ...now, options: "--max_semi_space_size=64" })).toEqual(["--v8-pool-size=1"]);
});

test("the collector has at most as many helpers as Node gives it, and one on the smallest host", () => {
  const helpers = (cpus: number) => serveFlags(["serve"], { ...now, cpus })[1];
  expect([helpers(1), helpers(4), helpers(64)]).toEqual(["--v8-pool-size=1", "--v8-pool-size=3", "--v8-pool-size=4"]);
});
