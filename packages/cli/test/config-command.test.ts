import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { runCli } from "./helpers.ts";
import { runInProcess } from "./in-process.ts";

const FLY = 'app = "shop"\n[http_service]\n  internal_port = 3000\n  tls_options = { alpn = ["h2"] }\n';

let folder: string;

beforeEach(async () => {
  folder = await tempFolder("cli");
});

/** In the directory, without a platform: the app file does not need one. */
const hibernaut = (words: string) => runInProcess(words.split(" "), { folder, environment: {} });
/** The same, where the words name a file relative to the directory. */
const inFolder = (words: string) => runCli(words, { folder, url: "", token: "" }, { HIBERNAUT_APP: "" }).ended;

function write(name: string, text: string): void {
  writeFileSync(join(folder, name), text);
}

describe("config validate", () => {
  test("lists warnings, and fails on them when it is to be strict", async () => {
    write("fly.toml", FLY);
    const warning = "fly.toml:4:3: warning: http_service.tls_options: Not supported";
    expect(await hibernaut("config validate")).toEqual({
      code: 0,
      stdout: expect.stringMatching(new RegExp(`^${warning}.*\nfly.toml is valid, with 1 warning\\.\n$`)),
      stderr: "",
    });
    expect(await hibernaut("config validate --strict")).toEqual({
      code: 1,
      stdout: expect.stringContaining(warning),
      stderr: expect.stringMatching(/^Error: fly\.toml has 1 warning, and --strict allows none\./),
    });
  });

  test("prefers hibernaut.toml, and --config to both", async () => {
    write("fly.toml", FLY);
    write("hibernaut.toml", 'app = "own"\n');
    write("other.toml", "app = 1\n");
    expect(await hibernaut("config validate")).toMatchObject({ code: 0, stdout: "hibernaut.toml is valid.\n" });
    expect(await inFolder("config validate -c other.toml")).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^other\.toml:1:1: error: app: /),
      stderr: "Error: other.toml has 1 error. Fix the lines above.\n",
    });
  });

  test("finds what a deploy would: a bad name, a file that is missing, a Dockerfile that is missing", async () => {
    write(
      "hibernaut.toml",
      'app = "My Shop"\n[build]\n  dockerfile = "Dockerfile.web"\n[[files]]\n  guest_path = "/etc/motd"\n  local_path = "motd.txt"\n',
    );
    const { code, stdout, stderr } = await hibernaut("config validate");
    expect({ code, stderr }).toEqual({ code: 1, stderr: "Error: hibernaut.toml has 3 errors. Fix the lines above.\n" });
    expect(stdout.split("\n").map((line) => line.split(": ").slice(0, 3).join(": "))).toEqual([
      "hibernaut.toml:1:1: error: app",
      "hibernaut.toml:3:3: error: build.dockerfile",
      "hibernaut.toml:6:3: error: files[0].local_path",
      "",
    ]);
    // Paths are relative to the file's directory, not to the one that the command runs in.
    mkdirSync(join(folder, "web"));
    write("web/Dockerfile.web", "FROM scratch\n");
    write("web/motd.txt", "hello\n");
    write("web/fly.toml", readFileSync(join(folder, "hibernaut.toml"), "utf8").replace("My Shop", "shop"));
    const below = await inFolder("config validate --config web/fly.toml");
    expect(below).toEqual({ code: 0, stdout: "web/fly.toml is valid.\n", stderr: "" });
  });

  test("says what is wrong with the file that is named, without codes of the system", async () => {
    mkdirSync(join(folder, "web"));
    expect(await inFolder("config validate --config nope")).toEqual({
      code: 1,
      stdout: "",
      stderr: "Error: There is no app file nope. Check the path, or create one with `hibernaut launch`.\n",
    });
    expect(await inFolder("config validate --config web")).toEqual({
      code: 2,
      stdout: "",
      stderr: "Error: web is a directory. Name the app file in it, as in --config web/hibernaut.toml.\n",
    });
  });

  test("is one document with --json", async () => {
    write("fly.toml", FLY);
    const { stdout } = await hibernaut("config validate --strict --json");
    expect(JSON.parse(stdout)).toEqual({
      file: "fly.toml",
      ok: false,
      findings: [
        { severity: "warning", path: "http_service.tls_options", message: expect.any(String), line: 4, column: 3 },
      ],
    });
  });

  test("without a file says what to do", async () => {
    expect(await hibernaut("config validate")).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^Error: This directory has no hibernaut\.toml or fly\.toml\. Create one/),
    });
    expect(await inFolder("config show --config none.toml")).toMatchObject({
      code: 1,
      stderr: "Error: There is no app file none.toml. Check the path, or create one with `hibernaut launch`.\n",
    });
  });
});

describe("config show", () => {
  test("prints the machines, and findings on standard error", async () => {
    write("fly.toml", FLY);
    const { code, stdout, stderr } = await hibernaut("config show --image shop:1");
    expect({ code, document: JSON.parse(stdout) as unknown }).toEqual({
      code: 0,
      document: {
        app: "shop",
        groups: {
          app: {
            config: {
              image: "shop:1",
              services: [{ protocol: "http", internal_port: 3000 }],
              metadata: { hibernaut_process_group: "app" },
            },
          },
        },
      },
    });
    expect(stderr).toMatch(/^fly\.toml:4:3: warning: /);
  });

  test("needs an image and a file without errors", async () => {
    write("fly.toml", FLY);
    expect(await hibernaut("config show")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("No image."),
    });
    write("fly.toml", "app = [");
    expect(await hibernaut("config show --image x")).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/error: Invalid TOML: .*\nError: fly\.toml has 1 error\./s),
    });
  });
});

test("commands of an app find its name in fly.toml", async () => {
  write("fly.toml", FLY);
  // An address where nobody answers: the failure is about the platform, no more about the app.
  const { stderr } = await hibernaut("machine list");
  expect(stderr).toMatch(/^Error: No platform found/);
});
