import { expect, test } from "vitest";
import { isOwnOrigin, isSecure, sessionCookie, sessionIn } from "../src/session-cookie.ts";

test.each([
  ["http://127.0.0.1:4280", "127.0.0.1:4280", false],
  ["http://localhost:4280", "LOCALHOST:4280", false],
  ["http://[::1]:4280", "[::1]:4280", false],
  ["https://hib.example.com", "hib.example.com", true],
  ["https://hib.example.com", "hib.example.com:443", true],
  ["https://hib.example.com:8443", "hib.example.com:8443", true],
  // Something in front of the API ended TLS, and says the name that the browser used.
  ["https://hib.example.com", "hib.example.com", false],
  ["http://hib.example.com", "hib.example.com:80", false],
])("a page of %s is this server's own, which is %s", (origin, host, tls) => {
  expect(isOwnOrigin(origin, host, tls)).toBe(true);
});

test.each([
  ["http://127.0.0.1:8080", "127.0.0.1:4280", false],
  ["http://shop.localhost:4280", "localhost:4280", false],
  ["https://shop.example.com", "hib.example.com", true],
  ["https://hib.example.com.evil.org", "hib.example.com", true],
  ["https://hib.example.com@evil.org", "hib.example.com", true],
  ["https://evil.org", "evil.org@hib.example.com", true],
  ["https://hib.example.com:8443", "hib.example.com", true],
  ["http://hib.example.com", "hib.example.com", true],
  ["file://hib.example.com", "hib.example.com", false],
  ["null", "hib.example.com", false],
  ["", "", false],
  ["http://", "hib.example.com", false],
  ["http://hib.example.com/page", "hib.example.com", false],
])("a page of %s is not of the server %s", (origin, host, tls) => {
  expect(isOwnOrigin(origin, host, tls)).toBe(false);
});

test("without a host, no page is its own", () => {
  expect(isOwnOrigin("http://127.0.0.1", undefined, false)).toBe(false);
});

test("the cookie is for this server alone, and scripts do not see it", () => {
  expect(sessionCookie("s3cret", { secure: false, maxAgeMs: 90_500 })).toBe(
    "hibernaut_session=s3cret; HttpOnly; SameSite=Strict; Path=/; Max-Age=90",
  );
  expect(sessionCookie("s3cret", { secure: true, maxAgeMs: 1000 })).toBe(
    "__Host-hibernaut_session=s3cret; HttpOnly; SameSite=Strict; Path=/; Max-Age=1; Secure",
  );
  expect(sessionCookie("", { secure: false, maxAgeMs: -5 })).toContain("Max-Age=0");
});

test("the secret is found among other cookies, and no cookie of a similar name is taken for it", () => {
  expect(sessionIn("a=b; hibernaut_session=s3cret; c=d", false)).toEqual({ secret: "s3cret", secure: false });
  expect(sessionIn("hibernaut_session=s3cret", true)).toBeUndefined();
  expect(sessionIn("__Host-hibernaut_session=s3cret", true)).toEqual({ secret: "s3cret", secure: true });
  for (const none of [undefined, "", "hibernaut_session=", "xhibernaut_session=1", "hibernaut_session2=1", ";;="])
    expect(sessionIn(none, false)).toBeUndefined();
});

test("behind something that ends TLS, the cookie that the browser got over TLS comes first", () => {
  const both = "hibernaut_session=planted; __Host-hibernaut_session=s3cret";
  expect(sessionIn(both, false)).toEqual({ secret: "s3cret", secure: true });
  expect(sessionIn("__Host-hibernaut_session=; hibernaut_session=s3cret", false)).toMatchObject({ secure: false });
});

test.each([
  ["https://hib.example.com", false, true],
  ["HTTPS://hib.example.com", false, true],
  ["http://127.0.0.1:4280", false, false],
  [undefined, false, false],
  [undefined, true, true],
])("a browser at %s, with TLS up to the API %s, gets a secure cookie: %s", (origin, tls, secure) => {
  expect(isSecure(origin, tls)).toBe(secure);
});
