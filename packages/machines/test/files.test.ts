/** The files of a configuration: the rule, the records that bring them into the guest, and their life. */
import { type FileConfig, filesRefusal, guestFiles, MAX_FILES_BYTES } from "@hibernaut/domain/guest-files";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MAX_PAYLOAD } from "../../guest/src/frame.ts";
import { decodeRecords, encodeRecords, Key } from "../../guest/src/records.ts";
import { shopForEach } from "./shop.ts";

const base64 = (text: string) => Buffer.from(text).toString("base64");
const CONF: FileConfig = { guest_path: "/etc/app.conf", raw_value: base64("colour = blue\n") };
const KEY: FileConfig = { guest_path: "/run/tls/key.pem", secret_name: "TLS_KEY" };

describe("files are refused", () => {
  test.each<[string, FileConfig[], RegExp]>([
    ["relative paths", [{ ...CONF, guest_path: "etc/x" }], /^`etc\/x` is not a valid path for a file\. Use an abs/],
    ["directories", [{ ...CONF, guest_path: "/etc/" }], /not a valid path/],
    ["the root", [{ ...CONF, guest_path: "/" }], /not a valid path/],
    ["paths that go up", [{ ...CONF, guest_path: "/etc/../x" }], /not a valid path/],
    ["what the kernel makes", [{ ...CONF, guest_path: "/proc/x" }], /cannot be written to \/proc\/x/],
    ["the local API", [{ ...CONF, guest_path: "/.hibernaut/api" }], /Choose another path/],
    ["no content", [{ guest_path: "/a" }], /needs either `raw_value` or `secret_name`/],
    ["two contents", [{ ...CONF, secret_name: "A" }], /needs either/],
    ["plain text", [{ ...CONF, raw_value: "colour = blue" }], /is not valid base64\. Encode it/],
    ["the same path twice", [CONF, CONF], /Two files cannot be written to \/etc\/app\.conf/],
    ["a file in a file", [CONF, { ...CONF, guest_path: "/etc/app.conf/x" }], /Two files cannot/],
    [
      "too much",
      [CONF, { guest_path: "/a", raw_value: Buffer.alloc(MAX_FILES_BYTES).toString("base64") }],
      /have 262158 bytes in total; .* up to 262144\. Put larger ones into the image\./,
    ],
  ])("%s", (_what, files, message) => {
    expect(filesRefusal(files)).toMatchObject({ message: expect.stringMatching(message), field: expect.anything() });
  });

  test("and others are accepted, with line breaks in base64, and exactly as large as allowed", () => {
    const lines = (base64("x".repeat(100)).match(/.{1,76}/g) ?? []).join("\n");
    expect(
      filesRefusal([CONF, KEY, { guest_path: "/usr/bin/run", raw_value: `${lines}\n`, mode: 0o755 }]),
    ).toBeUndefined();
    const full = Buffer.alloc(MAX_FILES_BYTES).toString("base64");
    expect(filesRefusal([{ guest_path: "/a", raw_value: full }])).toBeUndefined();
    expect(guestFiles([{ guest_path: "/a", raw_value: `${lines}\n` }], "shop", {})[0]?.content.toString()).toBe(
      "x".repeat(100),
    );
  });
});

test("whatever the files are, their records fit into frames and say the same", () => {
  const file = fc.record({
    path: fc.stringMatching(/^\/[a-z/ =.]{1,60}$/),
    mode: fc.integer({ min: 0, max: 0o777 }),
    content: fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc.integer({ min: MAX_PAYLOAD / 2 - 10, max: 2 * MAX_PAYLOAD }).map((length) => new Uint8Array(length).fill(7)),
    ),
  });
  const network = { address: "10.0.2.15/24", gateway: "10.0.2.2", dns: "10.0.2.3", hosts: [] };
  const config = { hostname: "m", args: ["app"], env: {}, user: "", workdir: "/", network, ports: [], volumes: [] };
  fc.assert(
    fc.property(fc.array(file, { maxLength: 8 }), (wanted) => {
      const files = wanted.map(({ content, ...rest }) => ({ ...rest, content: Buffer.from(content) }));
      const payloads = encodeRecords({ ...config, files });
      for (const payload of payloads) expect(payload.length).toBeLessThanOrEqual(MAX_PAYLOAD);
      const arrived: { path: string; mode: number; content: Buffer }[] = [];
      for (const [key, value] of payloads.flatMap(decodeRecords)) {
        const text = value.toString();
        const at = text.indexOf(" ");
        if (key === Key.file)
          arrived.push({ path: text.slice(at + 1), mode: Number.parseInt(text, 8), content: Buffer.alloc(0) });
        const last = arrived.at(-1);
        if (key === Key.fileData && last !== undefined) last.content = Buffer.concat([last.content, value]);
      }
      expect(arrived).toEqual(files);
    }),
    { numRuns: 30 },
  );
});

describe("a machine with files", () => {
  const shop = shopForEach();
  const files = (id: string) => shop.host.guest(id)?.files;

  test("finds them at every cold start, and keeps them over a sleep", async () => {
    const id = await shop.run({ files: [CONF, { ...CONF, guest_path: "/run.sh", mode: 0o755 }] });
    const expected = {
      "/etc/app.conf": { mode: "644", text: "colour = blue\n" },
      "/run.sh": { mode: "755", text: "colour = blue\n" },
    };
    expect(files(id)).toEqual(expected);
    await shop.suspend(id);
    await shop.start(id);
    expect([shop.record(id).lastBoot?.kind, files(id)], "a resume writes nothing").toEqual(["resume", {}]);
    shop.machines.restart("shop", id);
    await expect.poll(() => files(id)).toEqual(expected);
    await shop.reach(id, "running");
    const before = shop.record(id).version;
    await shop.update(id, { files: [{ ...CONF, raw_value: base64("colour = red\n") }] });
    await expect.poll(() => files(id)).toEqual({ "/etc/app.conf": { mode: "644", text: "colour = red\n" } });
    expect(shop.record(id).version).not.toBe(before);
  });

  test("gets the value of a secret, decoded, and only its app may read it", async () => {
    shop.platform.secrets.set("shop", { TLS_KEY: base64("-----BEGIN KEY-----\n") });
    const id = await shop.run({ files: [KEY] });
    expect(files(id)).toEqual({ "/run/tls/key.pem": { mode: "600", text: "-----BEGIN KEY-----\n" } });
  });

  test("does not start without the secret, or with one that is not base64, says how to set it, and then starts", async () => {
    const id = await shop.launch({ files: [KEY] });
    await shop.reach(id, "failed");
    const advice = 'Run `hibernaut secrets set TLS_KEY="$(base64 < file)" --app shop`.';
    const why = "The file /run/tls/key.pem cannot be written: ";
    expect(shop.record(id).stateReason).toBe(`${why}app shop has no secret TLS_KEY. ${advice}`);
    shop.platform.secrets.set("shop", { TLS_KEY: "-----BEGIN KEY-----" });
    shop.machines.start("shop", id);
    await shop.reach(id, "failed");
    await expect
      .poll(() => shop.record(id).stateReason)
      .toBe(`${why}the secret TLS_KEY of app shop is not valid base64. ${advice}`);
    shop.platform.secrets.set("shop", { TLS_KEY: base64("key") });
    await shop.start(id);
    expect(files(id)).toMatchObject({ "/run/tls/key.pem": { text: "key" } });
  });

  test("is refused with the field that is wrong, and nothing is created", async () => {
    await expect(shop.launch({ files: [CONF, { guest_path: "/a" }] })).rejects.toMatchObject({
      code: "invalid_argument",
      details: { field: "config.files[1]" },
    });
    expect(shop.machines.list("shop")).toEqual([]);
  });
});
