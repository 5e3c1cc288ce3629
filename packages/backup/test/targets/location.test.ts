/** Where targets are: what is read, what is refused, and what restic and `ssh` are told. */
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import { openAccess } from "../../src/targets/access.ts";
import { locationText, parseLocation, resticName } from "../../src/targets/location.ts";

test.each([
  ["/mnt/usb/hibernaut", "/mnt/usb/hibernaut"],
  ["s3://s3.example.com/bucket", "s3:https://s3.example.com/bucket"],
  ["s3://s3.example.com:9000/bucket/a/b?region=eu-central-1", "s3:https://s3.example.com:9000/bucket/a/b"],
  ["s3+http://127.0.0.1:8080/bucket/prefix", "s3:http://127.0.0.1:8080/bucket/prefix"],
  ["sftp://backup@nas.example.com/srv/hibernaut", "sftp:backup@nas.example.com:/srv/hibernaut"],
  ["sftp://backup@nas.example.com:2222/srv/hibernaut", "sftp:backup@nas.example.com:/srv/hibernaut"],
])("%s is %s for restic, and is shown as it was written", (text, name) => {
  expect(resticName(parseLocation(text))).toBe(name);
  expect(locationText(parseLocation(text))).toBe(text);
});

test.each([
  ...[
    "backups",
    "",
    "/",
    "rest:http://host/",
    "http://host/path",
    "s3://host",
    "s3:///bucket/x",
    "s3://host/bucket?acl=1",
  ],
  ...["s3://user@host/bucket", "sftp://host/path", "sftp://user@host", "sftp://-oProxyCommand=x@host/path"],
  ...["sftp://user@-oProxyCommand=x/path", "/a/\u0000b", "/a'b", "s3://host/bucket/%2e%2e/x", `/${"x".repeat(2000)}`],
])("%j is refused", (text) => {
  expect(() => parseLocation(text)).toThrow(expect.objectContaining({ code: "invalid_argument" }));
});

test("a password in a URL is refused, and not repeated", () => {
  for (const text of ["s3://me:hunter2@host/bucket", "sftp://me:hunter2@host/path"])
    expect(() => parseLocation(text)).toThrow(expect.not.stringContaining("hunter2"));
});

describe("the words that restic is started with", () => {
  const secrets = { s3: { key: "K", accessKey: "A", secretKey: "S" }, sftp: { key: "K", sshKey: "PRIVATE" } };

  test.each(["s3://host/bucket", "sftp://user@host:2222/path"])("have nothing secret for %s", async (url) => {
    const folder = await tempFolder("access");
    const place = { program: "restic", folder, knownHosts: join(folder, "hosts") };
    await using open = await openAccess(parseLocation(url), url.startsWith("s3") ? secrets.s3 : secrets.sftp, place);
    const words = open.access.options.join(" ");
    expect(words).not.toMatch(/PRIVATE|\bK\b|\bS\b/);
    if (url.startsWith("sftp"))
      expect(words).toMatch(/ssh -F \/dev\/null -E \S+ -i \S+ -p 2222 -l user .* host -s sftp$/);
  });
});
