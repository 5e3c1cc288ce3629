/** `-o wide` and `-o json`, for every command that lists. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { Noun } from "../src/command.ts";
import { NOUNS } from "../src/commands.ts";
import { asksForJson } from "../src/output-format.ts";
import { SERVICE, startCli, type TestCli } from "./helpers.ts";

// Each test starts several processes, and the host may be busy.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const PROGRAM = join(import.meta.dirname, "../bin/hibernaut.js");

test.each([
  [["ps", "--json"], true],
  [["ps", "-o", "json"], true],
  [["ps", "-ojson"], true],
  [["ps", "--output", "json"], true],
  [["ps", "--output=json"], true],
  [["ps", "-o", "wide"], false],
  [["apps", "create", "json"], false],
  [["exec", "web", "--", "jq", "--json"], false],
  [["exec", "web", "--", "kubectl", "-o", "json"], false],
])("%j asks for JSON: %s", (words, expected) => {
  expect(asksForJson(words)).toBe(expected);
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
  let cli: TestCli;
  beforeAll(async () => {
    cli = await startCli();
    await cli.json(["volumes", "create", "data"]);
    await cli.json(["machine", "run", "registry.example.com/me/shop:v1", ...SERVICE, "--name", "web"]);
  });
  afterAll(() => cli.close());

  test.each([
    ["ps", "ADDRESS  LAST START"],
    ["status --app shop", "MEMORY  ADDRESS"],
    ["apps list", "ANSWERS AT"],
    ["volumes list", "SCHEDULED SNAPSHOTS"],
    ["usage", "RESUMES  COLD STARTS"],
  ])("%s -o wide has more columns", async (words, more) => {
    const heads = (out: string) => out.replaceAll(/ {2,}/g, "  ");
    const [plain, wide] = await Promise.all(
      [[], ["-o", "wide"]].map((options) => cli.hibernaut([...words.split(" "), ...options])),
    );
    expect(heads(wide?.stdout ?? "")).toContain(more);
    expect(heads(plain?.stdout ?? more)).not.toContain(more);
  });

  test("-o json is --json", async () => {
    expect(await cli.hibernaut(["ps", "-o", "json"])).toEqual(await cli.hibernaut(["ps", "--json"]));
  });

  test("both at once, and other formats, are refused; a failure is JSON too", async () => {
    expect(await cli.hibernaut(["ps", "--json", "-o", "wide"])).toMatchObject({
      code: 2,
      stderr: "Error: --json and -o wide exclude each other. Choose one.\n",
    });
    expect(await cli.hibernaut(["ps", "-o", "yaml"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("wide, json"),
    });
    const missing = await cli.hibernaut(["machine", "list", "--app", "nosuch", "-o", "json"]);
    expect(JSON.parse(missing.stdout)).toMatchObject({ error: "not_found" });
  });

  test("a narrow terminal gets what fits, and everything with -o wide", async () => {
    const onTerminal = async (words: string) => {
      const command = `stty cols 60; exec "${process.execPath}" "${PROGRAM}" ${words}`;
      const env = { PATH: process.env.PATH, HIBERNAUT_API_URL: cli.server.url, HIBERNAUT_API_TOKEN: cli.server.token };
      const child = spawn("script", ["-qefc", command, "/dev/null"], { env });
      const [out] = await Promise.all([text(child.stdout), once(child, "close")]);
      return out.trimEnd().split("\r\n");
    };
    const fitting = await onTerminal("ps");
    for (const line of fitting) expect(line.length).toBeLessThanOrEqual(60);
    expect(fitting[0]).toMatch(/^APP +ID +NAME +STATE/);
    expect((await onTerminal("ps -o wide"))[1]).toContain("registry.example.com/me/shop:v1");
  });
});
