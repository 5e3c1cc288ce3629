import { expect, test } from "vitest";
import { isLoopback, shouldUpload, shouldUploadAfter } from "../../src/upload/where.ts";

const LOCAL = "http://127.0.0.1:4280";
const REMOTE = "http://shop.example.com:4280";
const UNKNOWN_PATH = { error: "not_found", details: { path: "/srv/shop.tar" } };

test.each([
  ["a platform on this machine reads the file itself", { apiUrl: LOCAL, here: true, asked: undefined }, false],
  ["a platform on another machine is sent what is here", { apiUrl: REMOTE, here: true, asked: undefined }, true],
  ["a path that is not here is one on the platform's host", { apiUrl: REMOTE, here: false, asked: undefined }, false],
  ["--upload decides", { apiUrl: LOCAL, here: false, asked: true }, true],
  ["--no-upload decides", { apiUrl: REMOTE, here: true, asked: false }, false],
])("%s", (_title, situation, uploads) => expect(shouldUpload(situation)).toBe(uploads));

test("a platform behind a tunnel has no such file, and is sent it then", () => {
  expect(shouldUploadAfter(UNKNOWN_PATH, { asked: undefined, here: true })).toBe(true);
  expect(shouldUploadAfter(UNKNOWN_PATH, { asked: false, here: true })).toBe(false);
  expect(shouldUploadAfter(UNKNOWN_PATH, { asked: undefined, here: false })).toBe(false);
  // The file is there, and has no image of that name.
  expect(shouldUploadAfter({ error: "not_found", details: {} }, { asked: undefined, here: true })).toBe(false);
  expect(shouldUploadAfter({ ...UNKNOWN_PATH, error: "unavailable" }, { asked: undefined, here: true })).toBe(false);
});

test.each([
  ["http://localhost:4280", true],
  ["http://[::1]:4280/", true],
  ["https://127.1.2.3", true],
  ["http://127.0.0.1.example.com", false],
  ["http://10.0.0.1:4280", false],
  ["nonsense", false],
])("%s: loopback is %s", (url, loopback) => expect(isLoopback(url)).toBe(loopback));
