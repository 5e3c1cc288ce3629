/** `hibernaut events`: what changes, for people and for programs. */
import type { StreamEvent } from "@hibernaut/client";
import { beforeAll, expect, test } from "vitest";
import { useCli } from "./helpers.ts";

const cli = useCli();
let id: string;

beforeAll(async () => {
  id = await cli.run();
});

async function documents(options: string): Promise<StreamEvent[]> {
  const { stdout } = await cli.hibernaut(`events --json ${options}`);
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as StreamEvent);
}

test("each line has time, type, app and machine, and says how a machine was started", async () => {
  const { stdout, code } = await cli.hibernaut("events");
  expect(code).toBe(0);
  const lines = stdout.trimEnd().split("\n");
  expect(lines[0]).toMatch(/^\S+Z app\.created +shop$/);
  expect(lines.at(-1)).toMatch(new RegExp(`^\\S+Z machine\\.running +shop ${id.slice(0, 6)} cold in \\d+ ms`));
});

test("events are chosen by app, machine, type, number and count", async () => {
  const all = await documents("--since 0");
  expect(await documents(`--type machine.running --app shop -m ${id}`)).toEqual([all.at(-1)]);
  expect(await documents(`--since ${all.at(-2)?.sequence}`)).toEqual(all.slice(-1));
  expect(await documents("-n 2")).toEqual(all.slice(-2));
  expect(await cli.json("events --app nope")).toMatchObject({ code: 1, document: { error: "not_found" } });
  expect(await cli.hibernaut("events -n 1001")).toMatchObject({ code: 2 });
});

test("--follow prints what comes, until Ctrl-C ends it", async () => {
  const { child, ended } = cli.begin("events --follow --type app");
  let seen = "";
  child.stdout.on("data", (text: string) => (seen += text));
  // Events from before it connected do not come: make them until it has.
  let number = 0;
  await expect
    .poll(
      () => {
        cli.server.platform.apps.create(`other-${(number += 1)}`);
        return seen;
      },
      { timeout: 20_000, interval: 50 },
    )
    .not.toBe("");
  expect(seen).toMatch(/app\.created +other-\d+\n/);
  child.kill("SIGINT");
  expect((await ended).code).not.toBe(0);
});
