/** `-o wide` and `-o json`, for every command that lists. */
import { beforeAll, describe, expect, test } from "vitest";
import type { Noun } from "../src/command.ts";
import { NOUNS } from "../src/commands.ts";
import { asksForJson } from "../src/output-format.ts";
import { SERVICE, useCli } from "./helpers.ts";

test.each([
  ["ps --json", true],
  ["ps -o json", true],
  ["ps -ojson", true],
  ["ps --output json", true],
  ["ps --output=json", true],
  ["ps -o wide", false],
  ["apps create json", false],
  ["exec web -- jq --json", false],
  ["exec web -- kubectl -o json", false],
])("%s asks for JSON: %s", (words, expected) => {
  expect(asksForJson(words.split(" "))).toBe(expected);
});

test("every command that is called list, or is one, takes -o", () => {
  const without = (noun: Noun): string[] => [
    ...noun.commands
      .filter(({ name }) => ["list", "uploads", "releases", "ps", "status", "usage", "events", "top"].includes(name))
      .filter(({ options = [] }) => !options.some(({ flags }) => flags.startsWith("-o, --output")))
      .map(({ name }) => `${noun.name} ${name}`.trim()),
    ...(noun.nouns ?? []).flatMap(without),
  ];
  // The first prints lines as they come. The second shows one machine, as names and values that are never shortened.
  expect(NOUNS.flatMap(without)).toEqual(["events", "machine status"]);
});

describe("with a platform", () => {
  const cli = useCli();
  beforeAll(async () => {
    await cli.json("volumes create data");
    await cli.json(`machine run registry.example.com/me/shop:v1 ${SERVICE} --name web`);
  });

  test.each([
    ["ps", "ADDRESS  LAST START"],
    ["status --app shop", "MEMORY  ADDRESS"],
    ["apps list", "ANSWERS AT"],
    ["volumes list", "SCHEDULED SNAPSHOTS"],
    ["usage", "RESUMES  COLD STARTS"],
  ])("%s -o wide has more columns", async (words, more) => {
    const heads = (out: string) => out.replaceAll(/ {2,}/g, "  ");
    expect(heads((await cli.hibernaut(`${words} -o wide`)).stdout)).toContain(more);
    expect(heads((await cli.hibernaut(words)).stdout)).not.toContain(more);
  });

  test("-o json is --json", async () => {
    expect(await cli.hibernaut("ps -o json")).toEqual(await cli.hibernaut("ps --json"));
  });

  test("both at once, and other formats, are refused; a failure is JSON too", async () => {
    expect(await cli.hibernaut("ps --json -o wide")).toMatchObject({
      code: 2,
      stderr: "Error: --json and -o wide exclude each other. Choose one.\n",
    });
    expect(await cli.hibernaut("ps -o yaml")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("wide, json"),
    });
    const missing = await cli.hibernaut("machine list --app nosuch -o json");
    expect(JSON.parse(missing.stdout)).toMatchObject({ error: "not_found" });
  });

  test("a narrow terminal gets what fits, and everything with -o wide", async () => {
    const linesOf = async (words: string) =>
      (await cli.onTerminal(words, "cols 60").ended).stdout.trimEnd().split("\r\n");
    const fitting = await linesOf("ps");
    for (const line of fitting) expect(line.length).toBeLessThanOrEqual(60);
    expect(fitting[0]).toMatch(/^APP +ID +NAME +STATE/);
    expect((await linesOf("ps -o wide"))[1]).toContain("registry.example.com/me/shop:v1");
  });
});
