/** What programs that use E2B's clients need: their variables, their keys, and the template that sandboxes are born from. */
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { exportLines, sandboxEnvironment } from "../src/sandbox-environment.ts";
import { useCli } from "./helpers.ts";

const cli = useCli();
const { hibernaut, json } = cli;
const at = (host: string, port = 7070) => ({ host, port });

describe("the variables for E2B's clients", () => {
  const plain = (listen: { host: string; port: number }, sandboxDomain = "localhost:7070") =>
    sandboxEnvironment({ sandboxListen: listen, sandboxDomain });

  test("name the port for both, without TLS", () => {
    expect(plain(at("127.0.0.1"))).toEqual({
      E2B_API_URL: "http://127.0.0.1:7070",
      E2B_SANDBOX_URL: "http://127.0.0.1:7070",
      E2B_VOLUME_API_URL: "http://127.0.0.1:7070",
      E2B_DOMAIN: "localhost:7070",
    });
    expect(plain(at("::1")).E2B_API_URL).toBe("http://[::1]:7070");
    expect(plain(at("box.internal", 80)).E2B_SANDBOX_URL).toBe("http://box.internal:80");
  });

  test.each(["0.0.0.0", "::"])("name the domain's host where the port listens at %s", (host) => {
    expect(plain(at(host), "example.com")).toEqual({
      E2B_API_URL: "http://example.com:7070",
      E2B_SANDBOX_URL: "http://example.com:7070",
      E2B_VOLUME_API_URL: "http://example.com:7070",
      E2B_DOMAIN: "example.com",
    });
    // The port at which clients reach it.
    expect(plain(at(host, 80), "example.com:8080").E2B_API_URL).toBe("http://example.com:8080");
  });

  test("name the domain only, with TLS", () => {
    for (const sandboxListen of [at("127.0.0.1"), at("::", 0)])
      expect(sandboxEnvironment({ sandboxListen, sandboxDomain: "example.com", sandboxTlsCert: "/etc/c.pem" })).toEqual(
        {
          E2B_API_URL: "https://api.example.com",
          E2B_DOMAIN: "example.com",
        },
      );
  });

  test("are lines for a shell, which takes nothing in them for a pattern", () => {
    expect(exportLines(plain(at("::1")))).toEqual([
      "export E2B_API_URL='http://[::1]:7070'",
      "export E2B_SANDBOX_URL='http://[::1]:7070'",
      "export E2B_VOLUME_API_URL='http://[::1]:7070'",
      "export E2B_DOMAIN=localhost:7070",
    ]);
  });

  test("do not exist while sandboxes are off, or have a port that nobody knows", () => {
    const off = expect.objectContaining({
      code: "failed_precondition",
      message: expect.stringMatching(/^Sandboxes are off: /),
    });
    expect(() => sandboxEnvironment({ sandboxDomain: "localhost" })).toThrow(off);
    expect(() => plain(at("127.0.0.1", 0))).toThrow("Set HIBERNAUT_SANDBOX_LISTEN to a port");
  });

  test("are what `sandbox env` prints, from the platform's settings", async () => {
    const settings = { HIBERNAUT_SANDBOX_LISTEN: "127.0.0.1:7070", HIBERNAUT_SANDBOX_DOMAIN: "localhost:7070" };
    const shown = (app: string) =>
      [
        "export E2B_API_URL=http://127.0.0.1:7070",
        "export E2B_SANDBOX_URL=http://127.0.0.1:7070",
        "export E2B_VOLUME_API_URL=http://127.0.0.1:7070",
        "export E2B_DOMAIN=localhost:7070",
        `# Set E2B_API_KEY, too, to a key: hibernaut tokens create <name> --e2b --app ${app}\n`,
      ].join("\n");
    expect(await hibernaut("sandbox env --app agents", settings)).toEqual({
      code: 0,
      stdout: shown("agents"),
      stderr: "",
    });
    expect((await hibernaut("sandboxes env", { ...settings, HIBERNAUT_APP: "" })).stdout).toBe(shown("<app>"));
    expect((await json("sandbox env", settings)).document).toEqual({
      E2B_API_URL: "http://127.0.0.1:7070",
      E2B_SANDBOX_URL: "http://127.0.0.1:7070",
      E2B_VOLUME_API_URL: "http://127.0.0.1:7070",
      E2B_DOMAIN: "localhost:7070",
    });
    expect(await hibernaut("sandbox env")).toEqual({
      code: 1,
      stdout: "",
      stderr:
        "Error: Sandboxes are off: set HIBERNAUT_SANDBOX_LISTEN (for example 127.0.0.1:7070) and restart the platform.\n",
    });
  });
});

describe("tokens create --e2b", () => {
  test("makes a key that belongs to one app, and ends when it is told to", async () => {
    const { code, document } = await json("tokens create agent --e2b --app shop --expires 30d");
    expect({ code, document }).toMatchObject({
      code: 0,
      document: { token: expect.stringMatching(/^e2b_[0-9a-f]+$/), scopes: ["deploy", "exec"], apps: ["shop"] },
    });
    expect(Date.parse(document.expires_at) - Date.parse(document.created_at)).toBe(30 * 86_400_000);
  });

  test.each([
    ["--e2b --app shop --scope exec", "has the scopes deploy and exec. Leave out --scope."],
    ["--e2b", "Give --app exactly once."],
    ["--e2b --app shop --app blog", "Give --app exactly once."],
    ["--e2b --app shop,blog", "Give --app exactly once."],
  ])("refuses %s", async (options, why) => {
    const { code, stderr } = await hibernaut(`tokens create agent ${options}`);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(why) });
  });
});

/** A place for builds, and a program in place of mmdebstrap that comes first in the PATH. */
async function builder(script: string) {
  const folder = await tempFolder("sandbox");
  const bin = join(folder, "bin");
  await mkdir(bin);
  await writeFile(join(bin, "mmdebstrap"), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const builds = join(folder, "builds");
  const variables = { PATH: `${bin}:${process.env.PATH}`, HIBERNAUT_BUILD_DIR: builds, TMPDIR: folder };
  return { variables, left: () => readdir(builds), builds };
}

describe("sandbox template", () => {
  test("makes the base image, a template of it, and leaves no archive", async () => {
    const { variables, left, builds } = await builder('echo "I: installing" >&2; echo "a root file system"');
    const { code, stdout, stderr } = await hibernaut("sandbox template base --pool 2", variables);
    expect({ code, stdout }, stderr).toEqual({
      code: 0,
      stdout: expect.stringMatching(
        /^Made template [0-9a-f]{14} \(base, .* MB\)\. `hibernaut sandbox env --app shop` says /,
      ),
    });
    expect(stderr).toMatch(
      /^Making the base image\.\.\.\nI: installing\npacking the image\n[^]*Making template base\.\.\.\n$/,
    );
    const [made] = (await json("templates list")).document;
    const { digest, ref } = made.image;
    expect(made).toMatchObject({ name: "base", config: { guest: { memory_mb: 512 } }, pool: { size: 2 } });
    // Pinned, because the archive is gone.
    expect(ref ?? "").toMatch(new RegExp(`^oci-archive:${builds}/base-\\w+/base\\.tar`));
    expect(made.config.image).toBe(`${/^[^@]*/.exec(made.config.image)?.[0]}@${digest}`);
    expect(await left()).toEqual([]);
    expect((await hibernaut("templates delete base")).code).toBe(0);
  });

  test("says what the build said when it fails, and makes nothing", async () => {
    const { variables, left } = await builder('echo "E: no mirror" >&2; exit 3');
    expect(await hibernaut("sandbox template base", variables)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/Error: mmdebstrap could not make the base image[^]*E: no mirror/),
    });
    expect(await left()).toEqual([]);
    expect((await json("templates list")).document).toEqual([]);
  });

  test("builds nothing for an app that does not exist", async () => {
    const { variables, builds } = await builder(": > $0.called");
    expect(await json("sandbox template base --app nothing", variables)).toMatchObject({
      code: 1,
      document: { error: "not_found" },
    });
    await expect(readdir(builds)).rejects.toThrow("ENOENT");
  });

  test("takes an image and a size instead", async () => {
    const { code, document } = await json("sandbox template python --image app:1 --memory 1gb");
    expect({ code, document }).toMatchObject({
      code: 0,
      document: { name: "python", config: { guest: { memory_mb: 1024 } }, image: { ref: "app:1" }, pool: { size: 0 } },
    });
    expect(await json("sandbox template python --image app:1")).toMatchObject({
      code: 1,
      document: { error: "already_exists" },
    });
  });
});
