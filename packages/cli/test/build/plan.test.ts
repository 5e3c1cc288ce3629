/** What a directory is taken for, and which commands that means. */
import { describe, expect, test } from "vitest";
import type { Folder } from "../../src/appfile/folder.ts";
import { chooseBuilder, detect } from "../../src/build/detect.ts";
import {
  buildahArguments,
  chooseTool,
  type DockerfileBuild,
  dockerArguments,
  readSecret,
  registriesFile,
} from "../../src/build/dockerfile-plan.ts";
import { commandOf, planInstall, planNode } from "../../src/build/node-plan.ts";

function folder(entries: string[], others: Partial<Folder> = {}): Folder {
  return {
    path: "/srv/shop",
    name: "shop",
    entries,
    packageJson: entries.includes("package.json") ? {} : undefined,
    dockerfile: entries.includes("Dockerfile") ? "" : undefined,
    pages: entries.includes("index.html") ? "." : undefined,
    images: [],
    appFile: undefined,
    ...others,
  };
}

const starts = { packageJson: { scripts: { start: "node server.js" } } };

describe("the builder", () => {
  test.each<[string[], Partial<Folder>, string | undefined]>([
    [["Dockerfile", "package.json", "go.mod"], starts, "dockerfile"],
    [["go.mod", "package.json"], starts, "go"],
    [["package.json", "index.html"], starts, "node"],
    [["package.json", "index.html"], {}, "static"],
    [["package.json", "requirements.txt"], {}, "python"],
    [["index.js"], {}, "node"],
    [["package.json", "lib"], { packageJson: { main: "./lib/main.js" } }, "node"],
    [["package.json"], { packageJson: { main: "gone.js" } }, undefined],
    [["app.py"], {}, "python"],
    [["public"], { pages: "public" }, "static"],
    [["README.md"], {}, undefined],
  ])("for %j", (entries, others, builder) => expect(detect(folder(entries, others))?.builder).toBe(builder));

  test("is the one that the app file names, and nothing to build is an error that says what to add", () => {
    expect(chooseBuilder(folder(["Dockerfile", "server.js"]), "node")).toBe("node");
    expect(() => chooseBuilder(folder(["package.json"]), undefined)).toThrow(/Add a start script to package\.json/);
    expect(() => chooseBuilder(folder([]), undefined)).toThrow(/\/srv\/shop has nothing.*Add a Dockerfile.*--image/);
  });
});

describe("the command of a Node app", () => {
  test.each([
    ["node server.js", ["node", "server.js"], {}],
    ["NODE_ENV=test PORT=3000 node 'my server.js'", ["node", "my server.js"], { NODE_ENV: "test", PORT: "3000" }],
    ["cross-env A=b=c next start -p 3000", ["next", "start", "-p", "3000"], { A: "b=c" }],
    ["node a.js && node b.js", ["/bin/sh", "-c", "node a.js && node b.js"], {}],
    ["node --port $PORT", ["/bin/sh", "-c", "node --port $PORT"], {}],
    ["node 'a.js", ["/bin/sh", "-c", "node 'a.js"], {}],
    ["A=b", ["/bin/sh", "-c", "A=b"], {}],
  ])("%s", (script, command, env) => expect(commandOf(script)).toEqual({ command, env }));

  test("is a file if there is no script", () => {
    expect(planNode(folder(["server.mjs", "index.js"])).command).toEqual(["node", "server.mjs"]);
  });
});

describe("the installation", () => {
  const dependencies = { express: "5" };

  const newYarn = { dependencies, packageManager: "yarn@4.1.0" };
  const quiet = "--no-audit --no-fund";

  test.each<[string, string[], Folder["packageJson"], string[]]>([
    ["nothing to install", [], { scripts: { start: "x" } }, []],
    ["npm's lock", ["package-lock.json"], { dependencies }, [`npm ci ${quiet} --omit=dev`]],
    ["no lock", [], { dependencies }, [`npm install ${quiet} --package-lock=false --omit=dev`]],
    ["pnpm's lock", ["pnpm-lock.yaml"], { dependencies }, ["pnpm install --frozen-lockfile --prod"]],
    ["yarn's lock", ["yarn.lock"], { dependencies }, ["yarn install --non-interactive --frozen-lockfile --production"]],
    ["a newer yarn", ["yarn.lock", "package-lock.json"], newYarn, ["yarn install --immutable"]],
    [
      "a script that builds",
      ["package-lock.json"],
      { scripts: { build: "vite build" } },
      [`npm ci ${quiet} --include=dev`, "npm run build", `npm prune --omit=dev ${quiet}`],
    ],
  ])("with %s", (_name, entries, packageJson, commands) => {
    const install = planInstall(folder(["package.json", ...entries], { packageJson }));
    expect((install?.commands ?? []).map((words) => words.join(" "))).toEqual(commands);
  });

  test("needs only the files that name the dependencies, unless scripts or packages are in the sources", () => {
    const lock = ["package-lock.json", "package.json", "server.js"];
    const needs = (packageJson: object) => planInstall(folder(lock, { packageJson }))?.needs;
    expect(needs({ dependencies })).toEqual(["package.json", "package-lock.json"]);
    expect(needs({ dependencies: { own: "file:../own" } })).toBe("all");
    expect(needs({ dependencies, workspaces: ["packages/*"] })).toBe("all");
    expect(needs({ dependencies, scripts: { postinstall: "node setup.js" } })).toBe("all");
  });

  test("says when versions may change", () => {
    const plan = (entries: string[]) => planInstall(folder(entries, { packageJson: { dependencies } }));
    expect(plan(["package.json"])?.notice).toContain("no lock file");
    expect(plan(["package.json", "package-lock.json"])?.notice).toBeUndefined();
  });
});

describe("a Dockerfile", () => {
  const build: DockerfileBuild = {
    context: "/srv/shop",
    file: "/srv/shop/Dockerfile",
    name: "hibernaut-build-shop",
    target: "last",
    args: { A: "b c" },
    secrets: { npm: "/tmp/token" },
    ignorefile: "/srv/shop/.ignored",
    fresh: true,
  };
  const common =
    "--file /srv/shop/Dockerfile --target last --build-arg A=b c --secret id=npm,src=/tmp/token --no-cache";

  test("is built by docker if its daemon answers, or else by buildah", () => {
    expect(chooseTool({ dockerAnswers: true, buildah: true })).toBe("docker");
    expect(chooseTool({ dockerAnswers: false, buildah: true })).toBe("buildah");
    expect(() => chooseTool({ dockerAnswers: false, buildah: false })).toThrow(
      /needs buildah.*apt-get install buildah/,
    );
    expect(dockerArguments(build).join(" ")).toContain(common);
    const words = buildahArguments(build).join(" ");
    expect(words).toContain(common);
    expect(words).toContain("--isolation chroot --layers");
    expect(words).toContain("--ignorefile /srv/shop/.ignored");
  });

  test.each([
    ["id=npm,src=token.txt", { id: "npm", file: "token.txt" }],
    ["id=npm,env=TOKEN", { id: "npm", variable: "TOKEN" }],
    ["npm=abc", undefined],
    ["id=../x,src=y", undefined],
  ])("with the secret %s", (text, secret) => expect(readSecret(text)).toEqual(secret));

  test("finds short names at Docker Hub, unless the host says otherwise", () => {
    expect(registriesFile(["# unqualified-search-registries = []\n"])).toContain("docker.io");
    expect(registriesFile(["", 'unqualified-search-registries = ["quay.io"]'])).toBeUndefined();
  });
});
