/** The server of static sites, as it runs in their machines. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { useTempFolder } from "../../../platform/test/helpers/temp.ts";

const SERVER = join(import.meta.dirname, "../../bin/static-server.mjs");

const temp = useTempFolder("static");
let child: ChildProcess;
let port: number;
beforeAll(async () => {
  const site = join(temp.path, "site");
  mkdirSync(join(site, "blog"), { recursive: true });
  mkdirSync(join(site, "empty"));
  writeFileSync(join(temp.path, "private.txt"), "private");
  writeFileSync(join(site, "index.html"), "<h1>home</h1>");
  writeFileSync(join(site, "style.css"), "h1 {}");
  writeFileSync(join(site, "blog/index.html"), "<h1>blog</h1>");
  writeFileSync(join(site, "a b.json"), "{}");
  writeFileSync(join(site, ".hidden"), "hidden");
  symlinkSync("../private.txt", join(site, "outside.txt"));
  symlinkSync("style.css", join(site, "inside.css"));
  child = spawn(process.execPath, [SERVER, site], { env: { PORT: "0" }, stdio: ["ignore", "pipe", "inherit"] });
  port = await new Promise((resolve) =>
    child.stdout?.once("data", (text) => resolve(Number(/port (\d+)/.exec(String(text))?.[1]))),
  );
});
afterAll(async () => {
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill();
  expect(await ended).toBe(0);
});

/** Sends the path as it is: `fetch` would resolve `..` itself. */
function ask(path: string, { method = "GET", headers = {} } = {}) {
  return new Promise<{ status: number | undefined; headers: Record<string, unknown>; body: string }>(
    (resolve, reject) => {
      const sent = request({ port, path, method, headers }, (response) => {
        let body = "";
        response.on("data", (chunk) => (body += String(chunk)));
        response.on("end", () => resolve({ status: response.statusCode, headers: response.headers, body }));
      });
      sent.on("error", reject).end();
    },
  );
}

test("files come with their type and length, and directories with their index", async () => {
  expect(await ask("/")).toMatchObject({
    status: 200,
    body: "<h1>home</h1>",
    headers: { "content-type": "text/html; charset=utf-8", "content-length": "13" },
  });
  expect(await ask("/style.css?v=2")).toMatchObject({ headers: { "content-type": "text/css; charset=utf-8" } });
  expect(await ask("/a%20b.json")).toMatchObject({ status: 200, headers: { "content-type": "application/json" } });
  expect(await ask("/blog/")).toMatchObject({ status: 200, body: "<h1>blog</h1>" });
  expect(await ask("/blog?page=2")).toMatchObject({ status: 301, headers: { location: "/blog/?page=2" } });
  expect(await ask("//blog")).toMatchObject({ status: 301, headers: { location: "/blog/" } });
  expect(await ask("/inside.css")).toMatchObject({ status: 200 });
});

test("HEAD has no body, other methods are refused, and what is known is not sent again", async () => {
  const head = await ask("/", { method: "HEAD" });
  expect(head).toMatchObject({ status: 200, body: "", headers: { "content-length": "13" } });
  expect(await ask("/", { method: "POST" })).toMatchObject({ status: 405, headers: { allow: "GET, HEAD" } });
  const known = { "if-none-match": String(head.headers.etag) };
  expect(await ask("/", { headers: known })).toMatchObject({ status: 304, body: "" });
  expect(await ask("/style.css", { headers: known })).toMatchObject({ status: 200 });
});

test.each([
  "/nothing",
  "/empty/",
  "/../private.txt",
  "/blog/../../private.txt",
  "/%2e%2e/private.txt",
  "/..%2fprivate.txt",
  "/blog/..%5c..%5cprivate.txt",
  "/outside.txt",
  "/.hidden",
  "/style.css/",
  "/style.css%00.html",
  "/%zz",
  "//..//private.txt",
])("%s is not found", async (path) => {
  expect(await ask(path)).toMatchObject({ status: 404, body: "Not found\n" });
});

test("a page of the site for what is not found", async () => {
  writeFileSync(join(temp.path, "site/404.html"), "<h1>lost</h1>");
  expect(await ask("/nothing")).toMatchObject({ status: 404, body: "<h1>lost</h1>" });
});
