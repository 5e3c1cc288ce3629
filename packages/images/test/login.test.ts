// docker-registry with htpasswd, and an open one behind a token server like those of Docker Hub and ghcr.io.
import { once } from "node:events";
import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createServer as createSilence } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { useTempFolder } from "../../platform/test/helpers/temp.ts";
import type { ImageStore, RegistryLogins } from "../src/contract.ts";
import { openImages } from "../src/open.ts";
import { openBadLine } from "./bad-line.ts";
import { makeLayout, readRootfs } from "./fixtures.ts";
import { LOGIN, type RealRegistry, startRegistry } from "./real-registry.ts";

let folder: string;
let closed: RealRegistry;
let open: RealRegistry;
const temporary = useTempFolder("images");
let dataDir: string;
let images: ImageStore;
let logins: RegistryLogins;
let tests = 0;

beforeAll(async () => {
  folder = temporary.path;
  closed = await startRegistry(folder, { login: true });
  open = await startRegistry(folder);
  await closed.push(await makeLayout(folder, "secret"), "me/secret:1");
}, 30_000);
afterAll(async () => {
  await Promise.all([closed?.stop(), open?.stop()]);
});
beforeEach(async () => {
  dataDir = join(folder, `data-${++tests}`);
  await mkdir(dataDir);
  ({ images, logins } = await openImages({ dataDir, environment: { HOME: dataDir } }));
});

describe("a registry with htpasswd", () => {
  test("accepts requests with the login only", async () => {
    const ref = `${closed.host}/me/secret:1`;
    await expect(images.ensure(ref)).rejects.toMatchObject({
      code: "not_found",
      message: expect.stringContaining(`hibernaut registry login ${closed.host}`),
    });
    await logins.put(closed.host, LOGIN);
    const image = await images.ensure(ref);
    expect(await readRootfs(image.rootfs, "app/content")).toBe("secret");
    expect(await logins.list()).toEqual([{ host: closed.host, username: "me" }]);
    expect(await logins.delete(closed.host)).toBe(true);
    expect(await logins.delete(closed.host)).toBe(false);
    await expect(images.ensure(ref)).rejects.toMatchObject({ code: "not_found" });
  });

  test("checks a login before it is stored", async () => {
    await expect(logins.put(closed.host, { ...LOGIN, password: "wrong" })).rejects.toMatchObject({
      code: "failed_precondition",
      details: { registry: closed.host, username: "me" },
    });
    await expect(logins.put("127.0.0.1:1", LOGIN)).rejects.toMatchObject({ code: "unavailable" });
    await expect(logins.put(open.host, LOGIN)).rejects.toMatchObject({ code: "unavailable" });
    await expect(logins.put("no/host", LOGIN)).rejects.toMatchObject({ code: "invalid_argument" });
    await expect(logins.put(closed.host, { username: "a:b", password: "x" })).rejects.toMatchObject({
      code: "invalid_argument",
    });
    expect(await logins.list()).toEqual([]);
  });

  test("that accepts the connection but does not answer fails within the time limit", async () => {
    const silent = createSilence().listen(0, "127.0.0.1");
    await once(silent, "listening");
    onTestFinished(() => void silent.close());
    const host = `127.0.0.1:${(silent.address() as AddressInfo).port}`;
    ({ logins } = await openImages({ dataDir, environment: { HOME: dataDir }, patience: { loginMs: 50 } }));
    await expect(logins.put(host, LOGIN)).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringContaining(`${host} did not answer within 0.05 s`),
    });
    expect(await logins.list()).toEqual([]);
  });

  test("is not asked again when the caller has given up", async () => {
    const gone = new AbortController();
    const nobody = new Error("nobody waits");
    const silent = createSilence(() => gone.abort(nobody)).listen(0, "127.0.0.1");
    await once(silent, "listening");
    onTestFinished(() => void silent.close());
    const host = `127.0.0.1:${(silent.address() as AddressInfo).port}`;
    await expect(logins.put(host, LOGIN, gone.signal)).rejects.toBe(nobody);
  });

  test("has its password in a file that only the owner can read, and never shows it", async () => {
    await logins.put(closed.host, LOGIN);
    const file = join(dataDir, "registries.json");
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readFile(file, "utf8")).toContain(LOGIN.password);
    expect(JSON.stringify([await logins.list(), await logins.get(closed.host)])).not.toContain(LOGIN.password);
    const error = await images.ensure(`${closed.host}/me/nothing:1`).catch((caught: unknown) => caught);
    expect(`${JSON.stringify(error)} ${String(error)}`).not.toMatch(/s3cret|czNj/);
    // Both at once, and neither is lost.
    await Promise.all([logins.put(closed.host, LOGIN), logins.put(`localhost:${closed.host.split(":")[1]}`, LOGIN)]);
    expect(await logins.list()).toHaveLength(2);
  });

  test("is not accessed when the logins cannot be read, and the error does not quote them", async () => {
    await writeFile(join(dataDir, "registries.json"), '{"x":{"password":"s3cret');
    const error = await images.ensure(`${closed.host}/me/secret:1`).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code: "unavailable", message: expect.stringContaining("Repair it") });
    expect(String(error)).not.toContain("s3cret");
  });

  test("is accessed with docker's login when the platform has none", async () => {
    const auth = Buffer.from(`${LOGIN.username}:${LOGIN.password}`).toString("base64");
    await mkdir(join(dataDir, ".docker"));
    await writeFile(join(dataDir, ".docker/config.json"), JSON.stringify({ auths: { [closed.host]: { auth } } }));
    expect((await images.ensure(`${closed.host}/me/secret:1`)).config.user).toBe("app");
  });
});

describe("a registry with a token server", () => {
  test("gets a token for the repository, but the storage that it redirects to does not", async () => {
    await open.push(await makeLayout(folder, "tokened"), "me/tokened:1");
    const asked: { url: string; authorization: string | undefined }[] = [];
    const tokens = createServer((request, reply) => {
      const url = request.url ?? "";
      asked.push({ url, authorization: request.headers.authorization });
      const known = request.headers.authorization === `Basic ${Buffer.from("me:right").toString("base64")}`;
      reply.writeHead(known ? 200 : 401).end(JSON.stringify({ token: `token-${asked.length}` }));
    });
    await new Promise<void>((resolve) => tokens.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void tokens.close());
    const realm = `http://127.0.0.1:${(tokens.address() as AddressInfo).port}/token`;
    const challenge = `Bearer realm="${realm}",service="test",scope="repository:me/tokened:pull"`;
    const storage = await openBadLine(open.host);
    onTestFinished(() => storage.close());
    let expired = false;
    const front = await openBadLine(open.host, ({ headers, url }) => {
      const valid = headers.authorization === `Bearer token-${asked.length}` && !expired;
      if (!valid) {
        expired = false;
        return { status: 401, headers: { "www-authenticate": challenge } };
      }
      // The token expires in the middle, so the next request needs a new one.
      if (url?.includes("/manifests/")) expired = true;
      return url?.includes("/blobs/") ? { status: 307, headers: { location: `http://${storage.host}${url}` } } : {};
    });
    onTestFinished(() => front.close());
    await expect(images.ensure(`${front.host}/me/tokened:1`)).rejects.toMatchObject({ code: "not_found" });
    await expect(logins.put(front.host, { username: "me", password: "wrong" })).rejects.toMatchObject({
      code: "failed_precondition",
    });
    await logins.put(front.host, { username: "me", password: "right" });
    expect(asked.at(-1)?.url).toBe("/token?service=test&account=me");
    const image = await images.ensure(`${front.host}/me/tokened:1`);
    expect(await readRootfs(image.rootfs, "app/content")).toBe("tokened");
    expect(asked.at(-1)?.url).toBe("/token?service=test&scope=repository%3Ame%2Ftokened%3Apull&account=me");
    expect(storage.served.length).toBeGreaterThan(0);
    expect(storage.served.map(({ headers }) => headers.authorization).filter(Boolean)).toEqual([]);
  });

  test("is not used without TLS, or with another scheme", async () => {
    for (const challenge of ['Bearer realm="http://auth.example/token"', "Negotiate", "", "Bearer service=x"]) {
      const front = await openBadLine(open.host, () => ({ status: 401, headers: { "www-authenticate": challenge } }));
      onTestFinished(() => front.close());
      await expect(images.ensure(`${front.host}/me/x:1`)).rejects.toMatchObject({ code: "unavailable" });
    }
  });
});
