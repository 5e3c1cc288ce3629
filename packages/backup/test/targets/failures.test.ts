/** What restic says, as restic 0.14 said it, and what we say then. */
import { expect, test } from "vitest";
import { isHopeless, resticFailure, saysAbsent } from "../../src/targets/failures.ts";

const said = (stderr: string) =>
  resticFailure(stderr, { place: "s3://host/bucket", what: "The backup could not be stored" });
const OPEN = "Fatal: unable to open config file: Stat:";
const WHERE = "Is there a repository at the following location?\ns3:https://host/bucket\n";

test.each([
  ["failed_precondition", /this is not its key/, "Fatal: wrong password or no key found\n"],
  [
    "unavailable",
    /in use by PID 4711 on backup-host/,
    "Fatal: unable to create lock in backend: repository is already locked exclusively by PID 4711 on backup-host by root (UID 0, GID 0)\n",
  ],
  ["resource_exhausted", /is full/, "Fatal: unable to save snapshot: write /mnt/x/tmp: no space left on device\n"],
  [
    "resource_exhausted",
    /is full/,
    "Save(<data/5f6aeb7865>) returned error, retrying: client.PutObject: Upload exceeds quota.\n",
  ],
  ["failed_precondition", /ReadWritePaths/, "Fatal: create repository failed: mkdir /mnt/x: read-only file system\n"],
  ["failed_precondition", /refuses the access/, `${OPEN} Access Denied.\n${WHERE}`],
  [
    "failed_precondition",
    /refuses the access/,
    `${OPEN} The request signature we calculated does not match the signature you provided. Check your key and signing method.\n${WHERE}`,
  ],
  [
    "unavailable",
    /clock/,
    `${OPEN} The difference between the request time and the current time is too large.\n${WHERE}`,
  ],
  [
    "unavailable",
    /cannot be reached/,
    `${OPEN} Get "https://host/bucket/": dial tcp 10.0.0.1:443: connect: connection refused\n${WHERE}`,
  ],
  [
    "failed_precondition",
    /is damaged/,
    "error for tree 0dc2aed8:\n  ciphertext verification failed\nFatal: repository contains errors\n",
  ],
  [
    "unavailable",
    /cannot be reached/,
    'Load(<data/ebb262a2bb>, 18073488, 0) returned error, retrying after 552.330144ms: Get "https://host/bucket/data/eb": dial tcp: connection refused\nFatal: repository contains errors\n',
  ],
  [
    "failed_precondition",
    /host key has changed/,
    "subprocess ssh: Host key verification failed.\nFatal: unable to open repository: unable to start the sftp session\n",
  ],
  ["failed_precondition", /no repository/, `${OPEN} The specified bucket does not exist.\n${WHERE}`],
  ["unavailable", /something new/, "Fatal: something new\n"],
] as const)("%s, %s", (code, words, stderr) => {
  const error = said(stderr);
  expect(error).toMatchObject({ code, message: expect.stringMatching(words) });
  expect(error.message).toMatch(/^The backup could not be stored: .*\.$/);
});

test("restic is not left to try for a quarter of an hour what cannot succeed, and is with what may pass", () => {
  const retry = (why: string) =>
    `Save(<data/5f6aeb7865>) returned error, retrying after 552.330144ms: client.PutObject: ${why}\n`;
  expect(isHopeless(retry("Upload exceeds quota."))).toBe(true);
  expect(isHopeless(retry("Access Denied."))).toBe(true);
  expect(isHopeless(retry("dial tcp 10.0.0.1:443: connect: connection refused"))).toBe(false);
  expect(isHopeless("Load(<data/ebb262a2bb>, 403, 507) returned error, retrying after 1s: EOF\n"), "a length").toBe(
    false,
  );
  expect(isHopeless("Fatal: Access Denied.\n"), "it ends by itself").toBe(false);
});

test("only a place of which restic says so has no repository", () => {
  expect(saysAbsent(`${OPEN} The specified key does not exist.\n${WHERE}`)).toBe(true);
  expect(saysAbsent(`Fatal: unable to open config file: stat /x/config: no such file or directory\n${WHERE}`)).toBe(
    true,
  );
  expect(saysAbsent("Fatal: unable to open config file: Lstat: file does not exist\n")).toBe(true);
  for (const other of ["Access Denied.", "We encountered an internal error. Please try again.", 'Get "https://x": EOF'])
    expect(saysAbsent(`${OPEN} ${other}\n${WHERE}`), other).toBe(false);
});

test("what a server says cannot move a terminal's cursor", () => {
  expect(said("Fatal: \u001b[2Jhello\r\nworld").message).not.toMatch(/\p{Cc}/u);
});
