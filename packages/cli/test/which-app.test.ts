/** A command in a directory without an app file, where nothing names an app. */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { carryOut } from "../src/carrying-out.ts";
import type { Command, Noun } from "../src/command.ts";
import { NOUNS } from "../src/commands.ts";
import { Context } from "../src/context.ts";
import { buildProgram } from "../src/program.ts";

let folder: string;
let server: Server;
/** What the platform, which has no apps, was asked. */
const asked: string[] = [];
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "hibernaut-no-app-"));
  server = createServer(({ method, url }, response) => {
    asked.push(`${method} ${url}`);
    response.setHeader("content-type", "application/json").end('{"apps":[]}');
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  vi.spyOn(process, "cwd").mockReturnValue(folder);
  vi.stubEnv("HIBERNAUT_APP", "");
  vi.stubEnv("HIBERNAUT_API_URL", `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  vi.stubEnv("HIBERNAUT_API_TOKEN", "x");
});
afterAll(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  server.close();
  rmSync(folder, { recursive: true });
});
beforeEach(() => void asked.splice(0));

const named = ({ name, commands, nouns = [] }: Noun, before = ""): [string, Command][] => {
  const path = [before, name].filter(Boolean).join(" ");
  return [
    ...commands.map((one): [string, Command] => [[path, one.name].filter(Boolean).join(" "), one]),
    ...nouns.flatMap((below) => named(below, path)),
  ];
};
const ofApp = NOUNS.flatMap((noun) => named(noun)).filter(([, command]) => command.ofApp === true);

test.each(ofApp)("%s says that there is no app before it says or asks anything else", async (_path, command) => {
  const said = vi.spyOn(Context.prototype, "say");
  const example = (command.examples[0] ?? "").replace(/ (--app|-a) \S+| < .*/g, "");
  const words = example.replace(/^.*?\bhibernaut /, "").split(" ");
  const program = buildProgram(NOUNS, "", async (chosen, args, options, globals) => {
    await carryOut(chosen, new Context(globals), args, options);
  });
  const outcome = program.parseAsync(words, { from: "user" });
  if (command.appIsNamed === true) {
    await expect(outcome).rejects.toThrow(/^This directory has no hibernaut\.toml or fly\.toml\. Create one with/);
    expect(asked).toEqual([]);
  } else {
    await expect(outcome).rejects.toThrow("No app. The platform has none yet: create one with `hibernaut apps create");
    expect(asked).toEqual([expect.stringMatching(/^GET \/v1\/apps/)]);
  }
  expect(said).not.toHaveBeenCalled();
});
