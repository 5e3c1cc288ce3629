import { splitWords } from "@hibernaut/lib/words";
import { describe, expect, test } from "vitest";
import { pathText } from "../../src/appfile/findings.ts";
import { machineConfigs } from "../../src/appfile/machine-configs.ts";
import { nearest } from "../../src/appfile/nearest.ts";
import { durationText, parseMegabytes, parseSeconds } from "../../src/appfile/quantities.ts";
import { readAppFile } from "../../src/appfile/read.ts";

test.each([
  ["5s", "s", 5],
  ["1m30s", "s", 90],
  ["1h", "s", 3600],
  ["1.5s", "s", 1.5],
  ["250ms", "s", 0.25],
  [10_000, "ms", 10],
  ["10000", "ms", 10],
  [5, "s", 5],
  ["5 s", "s", undefined],
  ["", "s", undefined],
  ["1d", "s", undefined],
  ["-1s", "s", undefined],
] as const)("%j in %s is %j seconds", (value, unit, seconds) => expect(parseSeconds(value, unit)).toBe(seconds));

test.each([
  ["512mb", "m", 512],
  ["1gb", "m", 1024],
  ["1 GB", "m", 1024],
  ["1.5GiB", "m", 1536],
  ["2g", "m", 2048],
  ["1024kb", "m", 1],
  [256, "m", 256],
  ["10", "g", 10_240],
  ["ten", "g", undefined],
  ["10x", "g", undefined],
] as const)("%j in %s is %j MB", (value, unit, megabytes) => expect(parseMegabytes(value, unit)).toBe(megabytes));

test.each([
  [15, "15s"],
  [0.5, "500ms"],
  [90, "90s"],
  [1000.5, "1001s"],
])("%d seconds are %s", (seconds, text) => expect(durationText(seconds)).toBe(text));

test.each([
  ["", []],
  ["a  b\tc\n", ["a", "b", "c"]],
  [`a 'b c' "d e"`, ["a", "b c", "d e"]],
  [`a'b'"c"d`, ["abcd"]],
  ["a ''", ["a", ""]],
  [String.raw`"a \" \n \$"`, [String.raw`a " \n $`]],
  [String.raw`a\ b '\n'`, ["a b", String.raw`\n`]],
  ["a && b | c > $D", ["a", "&&", "b", "|", "c", ">", "$D"]],
  ["a 'b", undefined],
  ['a "b', undefined],
  ["a \\", undefined],
])("%j is split into %j", (command, words) => expect(splitWords(command)).toEqual(words));

test.each([
  ["internal_prot", "internal_port"],
  ["Internal-Port", "internal_port"],
  ["gateway", undefined],
  ["x", undefined],
])("nearest to %s is %s", (word, near) => expect(nearest(word, ["internal_port", "protocol", "ports"])).toBe(near));

test("a path is written as it would be in the file", () => {
  expect(pathText(["services", 1, "ports", 0, "port"])).toBe("services[1].ports[0].port");
  expect(pathText(["env", "A.B"])).toBe('env."A.B"');
  expect(pathText([])).toBe("");
});

describe("machines", () => {
  const file = readAppFile(
    '[build]\nimage = "a"\n[env]\nA = "1"\nB = "2"\n[http_service]\nmin_machines_running = 3',
  ).file;
  if (file === undefined) throw new Error("the file was refused");

  test("take image and variables of the command line before the file's", () => {
    expect(machineConfigs(file, { image: "b", env: { B: "3", C: "4" } }).get("app")).toEqual({
      count: 3,
      config: {
        image: "b",
        env: { A: "1", B: "3", C: "4" },
        services: [{ protocol: "http", internal_port: 8080, min_machines_running: 3 }],
        metadata: { hibernaut_process_group: "app" },
      },
    });
  });

  test("of some groups dump before a backup, and are counted in a drill", () => {
    const { file: groups } = readAppFile(
      `[build]\nimage = "a"\n[processes]\nweb = ""\ndb = ""\n[backup]\nprocesses = ["db"]\ncommand = "dump -f '/data/a b'"\ntimeout = "90s"\n[[backup.counts]]\nname = "orders"\ncommand = ["count"]\nminimum = 0`,
    );
    if (groups === undefined) throw new Error("the file was refused");
    const configs = machineConfigs(groups);
    expect(configs.get("web")?.config.backup).toBeUndefined();
    expect(configs.get("db")?.config.backup).toEqual({
      command: ["dump", "-f", "/data/a b"],
      timeout: 90,
      counts: [{ name: "orders", command: ["count"], minimum: 0 }],
    });
  });

  test("need an image", () => {
    expect(() => machineConfigs({ ...file, image: undefined })).toThrow("No image. Add --image <reference>");
  });
});
