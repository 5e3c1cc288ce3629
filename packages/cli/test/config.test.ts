import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { findConnection as find, findApp } from "../src/config.ts";

let folder: string;

/** Without a service of this host. */
const findConnection = (environment: Parameters<typeof find>[0]) =>
  find(environment, join(folder, "service/config.json"));

beforeEach(async () => {
  folder = await tempFolder("cli");
});

function write(file: string, content: unknown): void {
  mkdirSync(join(folder, file, ".."), { recursive: true });
  writeFileSync(join(folder, file), typeof content === "string" ? content : JSON.stringify(content));
}

describe("the connection", () => {
  const saved = { api_url: "http://127.0.0.1:4280", api_token: "hib_saved" };
  const home = () => ({ XDG_CONFIG_HOME: folder });

  test("is the environment's", () => {
    write("hibernaut/config.json", saved);
    const given = { ...home(), HIBERNAUT_API_URL: "http://x", HIBERNAUT_API_TOKEN: "t" };
    expect(findConnection(given)).toEqual({ apiUrl: "http://x", token: "t", tls: {} });
  });

  test("else the user's file's, or its with another token", () => {
    write("hibernaut/config.json", saved);
    expect(findConnection(home())).toEqual({ apiUrl: saved.api_url, token: "hib_saved", tls: {} });
    expect(findConnection({ ...home(), HIBERNAUT_API_TOKEN: "t" })).toMatchObject({
      apiUrl: saved.api_url,
      token: "t",
    });
  });

  test("is the one in the data directory when that is set", () => {
    write("hibernaut/config.json", saved);
    write("data/config.json", { api_url: "http://127.0.0.1:9", api_token: "hib_data" });
    const found = findConnection({ ...home(), HIBERNAUT_DATA_DIR: join(folder, "data") });
    expect(found).toMatchObject({ apiUrl: "http://127.0.0.1:9", token: "hib_data" });
  });

  test("is the service's when the user has none", () => {
    const service = { api_url: "http://127.0.0.1:9", api_token: "hib_service" };
    write("service/config.json", service);
    expect(findConnection(home())).toEqual({ apiUrl: service.api_url, token: "hib_service", tls: {} });
    write("hibernaut/config.json", saved);
    expect(findConnection(home()).token).toBe("hib_saved");
  });

  test("never takes a saved token to another address", () => {
    write("hibernaut/config.json", saved);
    expect(findConnection({ ...home(), HIBERNAUT_API_URL: `${saved.api_url}/` }).token).toBe("hib_saved");
    expect(() => findConnection({ ...home(), HIBERNAUT_API_URL: "http://elsewhere" })).toThrow(
      "No token for http://elsewhere.",
    );
  });

  test("has the files of TLS, and takes those of a file no more than its token to another address", () => {
    write("hibernaut/config.json", {
      ...saved,
      api_ca: "/ca.crt",
      api_client_cert: "ann.crt",
      api_client_key: "ann.key",
    });
    const file = join(folder, "hibernaut/config.json");
    const own = {
      ca: { file: "/ca.crt", from: `api_ca in ${file}` },
      cert: { file: join(folder, "hibernaut/ann.crt"), from: `api_client_cert in ${file}` },
      key: { file: join(folder, "hibernaut/ann.key"), from: `api_client_key in ${file}` },
    };
    expect(findConnection(home()).tls).toEqual(own);
    const elsewhere = { HIBERNAUT_API_URL: "http://elsewhere", HIBERNAUT_API_TOKEN: "t" };
    expect(findConnection({ ...home(), ...elsewhere }).tls).toEqual({});
    // A certificate and its key belong together.
    expect(findConnection({ ...home(), HIBERNAUT_API_CLIENT_CERT: "bob.crt" }).tls).toEqual({
      ca: own.ca,
      cert: { file: "bob.crt", from: "HIBERNAUT_API_CLIENT_CERT" },
    });
  });

  test("that is unknown or broken says what to do", () => {
    expect(() => findConnection(home())).toThrow(/does not exist. Start one with `hibernaut serve`/);
    write("hibernaut/config.json", "{ broken");
    expect(() => findConnection(home())).toThrow(/is not valid JSON. Fix it/);
  });
});

describe("the app", () => {
  test("is the option's, else the environment's, else the project's", () => {
    write("hibernaut.toml", 'app = "project"\n');
    expect(findApp("option", { HIBERNAUT_APP: "environment" }, folder)).toBe("option");
    expect(findApp(undefined, { HIBERNAUT_APP: "environment" }, folder)).toBe("environment");
    expect(findApp(undefined, {}, folder)).toBe("project");
  });

  test("is fly.toml's where there is no hibernaut.toml", () => {
    write("fly.toml", "app = 'flown'\n");
    expect(findApp(undefined, {}, folder)).toBe("flown");
    write("hibernaut.toml", 'app = "own"\n');
    expect(findApp(undefined, {}, folder)).toBe("own");
  });

  test.each([
    ["# a comment\n\napp = 'shop' # mine\n[build]\nx = 1", "shop"],
    ['  app="shop"', "shop"],
    ['[build]\napp = "not this"', undefined],
    ['# app = "not this"', undefined],
    ['application = "not this"', undefined],
  ])("%j names %s", (content, app) => {
    write("hibernaut.toml", content);
    if (app === undefined) expect(() => findApp(undefined, {}, folder)).toThrow("No app. Add --app <name>");
    else expect(findApp(undefined, {}, folder)).toBe(app);
  });
});
