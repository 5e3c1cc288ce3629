import { expect, test } from "vitest";
import { isOwnOrigin, secretIn, sessionCookie } from "../../src/api/session-cookie.ts";

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
  expect(sessionCookie("s3cret", { tls: false, maxAgeMs: 90_500 })).toBe(
    "hibernaut_session=s3cret; HttpOnly; SameSite=Strict; Path=/; Max-Age=90",
  );
  expect(sessionCookie("s3cret", { tls: true, maxAgeMs: 1000 })).toBe(
    "__Host-hibernaut_session=s3cret; HttpOnly; SameSite=Strict; Path=/; Max-Age=1; Secure",
  );
  expect(sessionCookie("", { tls: false, maxAgeMs: -5 })).toContain("Max-Age=0");
});

test("the secret is found among other cookies, and no cookie of a similar name is taken for it", () => {
  expect(secretIn("a=b; hibernaut_session=s3cret; c=d", false)).toBe("s3cret");
  expect(secretIn("hibernaut_session=s3cret", true)).toBeUndefined();
  expect(secretIn("__Host-hibernaut_session=s3cret", true)).toBe("s3cret");
  for (const none of [undefined, "", "hibernaut_session=", "xhibernaut_session=1", "hibernaut_session2=1", ";;="])
    expect(secretIn(none, false)).toBeUndefined();
});
