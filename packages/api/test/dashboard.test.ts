/** The files of the dashboard, served by the API. */
import { mkdirSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { expect, onTestFinished, test } from "vitest";
import { temporaryFolder } from "../../store/test/helpers.ts";
import { startApi } from "./helpers.ts";

const PAGE = "<!doctype html><title>Hibernaut</title>";
const SCRIPT = `console.log(${JSON.stringify("x".repeat(5000))})`;
const HTML = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };

function built(): string {
  const folder = temporaryFolder();
  mkdirSync(join(folder, "assets"));
  const put = (name: string, content: string | Buffer) => writeFileSync(join(folder, name), content);
  put("index.html", PAGE);
  put("favicon.svg", "<svg/>");
  put("assets/app-1a2b.js", SCRIPT);
  put("assets/app-1a2b.js.gz", gzipSync(SCRIPT));
  put("assets/app-1a2b.js.br", brotliCompressSync(SCRIPT));
  put("assets/app-1a2b.css", "body{}");
  put("notes.secret", "nothing for browsers");
  return folder;
}

async function api(dashboard: string | undefined) {
  const server = await startApi({ dashboard });
  onTestFinished(() => server.close());
  return {
    server,
    get: (path: string, headers: Record<string, string> = {}) => fetch(server.url + path, { headers }),
    raw: (path: string, headers: Record<string, string> = {}, method = "GET") => raw(server.url, path, headers, method),
  };
}

/** `fetch` tidies paths up and unpacks bodies. */
function raw(url: string, path: string, headers: Record<string, string>, method: string) {
  return new Promise<{ status: number; headers: Record<string, unknown>; body: Buffer }>((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const sent = request({ hostname, port, path, method, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }),
      );
    });
    sent.on("error", reject).end();
  });
}

test("browsers get the page at its own paths, with a strict policy, and fingerprinted files for good", async () => {
  const { get } = await api(built());
  for (const path of ["/", "/apps/shop", "/apps/shop/machines/0123", "/host", "/sign-in?next=/host"]) {
    const page = await get(path, HTML);
    expect([page.status, await page.text()], path).toEqual([200, PAGE]);
    expect(Object.fromEntries(page.headers)).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-cache",
      "x-content-type-options": "nosniff",
      "x-frame-options": "DENY",
      "content-security-policy": expect.stringMatching(
        /^default-src 'none'; script-src 'self'; .*frame-ancestors 'none'$/,
      ),
    });
  }
  const style = await get("/assets/app-1a2b.css");
  expect(style.headers.get("content-type")).toBe("text/css; charset=utf-8");
  expect(style.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
  expect((await get("/favicon.svg")).headers.get("content-type")).toBe("image/svg+xml");
});

test("a file is sent compressed where the browser accepts that, and not again when it is known", async () => {
  const { raw: ask } = await api(built());
  const script = "/assets/app-1a2b.js";
  const sent = async (encodings: string) => {
    const { headers, body } = await ask(script, encodings === "" ? {} : { "accept-encoding": encodings });
    return [headers["content-encoding"], body.length];
  };
  expect(await sent("gzip, deflate, br")).toEqual(["br", brotliCompressSync(SCRIPT).length]);
  expect(await sent("gzip;q=1.0, br;q=0")).toEqual(["gzip", gzipSync(SCRIPT).length]);
  expect(await sent("")).toEqual([undefined, SCRIPT.length]);
  const page = await ask("/", HTML);
  const known = await ask("/", { ...HTML, "if-none-match": String(page.headers.etag) });
  expect([known.status, known.body.length]).toEqual([304, 0]);
  const head = await ask("/", HTML, "HEAD");
  expect([head.status, head.headers["content-length"], head.body.length]).toEqual([200, String(PAGE.length), 0]);
});

test("programs get what they got before, and the API keeps its own paths", async () => {
  const { get, raw: ask } = await api(built());
  for (const path of ["/", "/apps/shop", "/nothing"]) {
    for (const accept of ["application/json", "*/*"]) {
      const reply = await get(path, { accept });
      expect(reply.status, `${path} ${accept}`).toBe(404);
      expect(await reply.json()).toMatchObject({ error: "not_found", request_id: expect.any(String) });
      expect(reply.headers.get("content-security-policy")).toBe("default-src 'none'; frame-ancestors 'none'");
    }
  }
  for (const path of ["/v1", "/v1/nothing", "/metrics/x", "/status/none", "/assets/gone.js"])
    expect(await (await get(path, HTML)).json(), path).toMatchObject({ error: "not_found" });
  expect((await get("/v1/apps", HTML)).status).toBe(401);
  expect((await get("/openapi.json", HTML)).headers.get("content-type")).toContain("application/json");
  expect((await ask("/", HTML, "POST")).status).toBe(404);
});

test("nothing but the dashboard's files is read, and no directory is listed", async () => {
  const { raw: ask } = await api(built());
  for (const path of [
    "/assets/",
    "/assets",
    "/notes.secret",
    "/assets/app-1a2b.js.br",
    "/../index.html",
    "/assets/../../../../etc/passwd",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/assets/%2e%2e%2findex.html",
    "//etc/passwd",
    "/assets/app-1a2b.js%00.css",
  ]) {
    const { status, body } = await ask(path);
    expect([400, 404], path).toContain(status);
    expect(JSON.parse(String(body)), path).toHaveProperty("error");
  }
});

test("turned off, or not built, there is no dashboard, and the API is what it was", async () => {
  for (const folder of [undefined, join(temporaryFolder(), "none"), temporaryFolder()]) {
    const { get } = await api(folder);
    const reply = await get("/", HTML);
    expect(reply.status).toBe(404);
    expect(await reply.json()).toMatchObject({ error: "not_found" });
  }
});
