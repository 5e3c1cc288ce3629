/** Bytes of secrets that the platform had in buffers are zeros once they were used. Strings are not, and stay out of this. */
import type * as Crypto from "node:crypto";
import { once } from "node:events";
import type * as Fs from "node:fs";
import { writeFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { decodeRecords, encodeFrame, FrameReader, FrameType, GuestAgent, Key } from "@hibernaut/guest";
import { wiping } from "@hibernaut/lib/wipe";
import { openStore } from "@hibernaut/store/open";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { createToken } from "../../api/src/tokens.ts";
import { temporaryFolder } from "../../store/test/helpers.ts";
import { openSecrets } from "../src/open.ts";

/** The very buffers that Node gave the platform, with a copy of what was in them. */
const seen = vi.hoisted(() => ({ list: [] as { what: string; bytes: Uint8Array; was: string }[] }));

function watched<A extends unknown[], R>(what: string, real: (...args: A) => R): (...args: A) => R {
  return (...args) => {
    const result = real(...args);
    if (result instanceof Uint8Array)
      seen.list.push({ what, bytes: result, was: Buffer.from(result).toString("latin1") });
    return result;
  };
}
vi.mock(import("node:fs"), async (original) => {
  const real: typeof Fs = await original();
  return { ...real, readFileSync: watched("file", real.readFileSync as never) as typeof Fs.readFileSync };
});
vi.mock(import("node:crypto"), async (original) => {
  const real: typeof Crypto = await original();
  const createDecipheriv = ((...args: Parameters<typeof Crypto.createDecipheriv>) => {
    const decipher = real.createDecipheriv(...args);
    decipher.update = watched("plain", decipher.update.bind(decipher) as never) as never;
    return decipher;
  }) as typeof Crypto.createDecipheriv;
  return { ...real, createDecipheriv, randomBytes: watched("random", real.randomBytes as never) as never };
});

const is = (what: string) => seen.list.filter((one) => one.what === what);
const isZero = ({ bytes }: { bytes: Uint8Array }) => bytes.every((byte) => byte === 0);

let folder: string;
beforeEach(() => {
  folder = temporaryFolder();
  seen.list.length = 0;
});

function secretsIn() {
  const store = openStore(join(folder, "hibernaut.db"));
  onTestFinished(() => store.close());
  store.apps.insert({ name: "shop", createdAt: "2026-01-01T00:00:00.000Z" });
  return { store, secrets: openSecrets({ store: store.secrets, keyFile: join(folder, "secrets.key") }) };
}

describe("are zeros afterwards:", () => {
  test("the key of the secrets, from when it was made and whenever it was read, and decrypted values", () => {
    const { secrets } = secretsIn();
    secrets.set("shop", { DB: "a password", EMPTY: "" });
    const [made] = is("random").filter(({ bytes }) => bytes.length === 32);
    expect(made, "the key that was made").toBeDefined();
    expect(secrets.environment("shop")).toEqual({ DB: "a password", EMPTY: "" });
    secrets.set("shop", { DB: "another" });
    expect(secrets.environment("shop")).toEqual({ DB: "another", EMPTY: "" });
    const keys = is("file").filter(({ was }) => was === made?.was);
    expect(keys.length).toBeGreaterThan(2);
    expect(is("plain").map(({ was }) => was)).toContain("a password");
    expect([made, ...keys, ...is("plain")].map((one) => one !== undefined && isZero(one))).not.toContain(false);
  });

  test("also when the key is wrong, or not a key", () => {
    const { secrets } = secretsIn();
    secrets.set("shop", { DB: "a password" });
    seen.list.length = 0;
    for (const wrong of [Buffer.alloc(32, 7), Buffer.alloc(9, 7)]) {
      writeFileSync(join(folder, "secrets.key"), wrong);
      expect(() => secrets.environment("shop")).toThrow(/key/);
      expect(() => secrets.set("shop", { DB: "new" })).toThrow(/key/);
    }
    const read = is("file").filter(({ was }) => was.startsWith("\x07\x07"));
    expect(read).toHaveLength(4);
    expect([...read, ...is("plain")].filter((one) => !isZero(one))).toEqual([]);
  });

  test("the random bytes of a token", () => {
    const { store } = secretsIn();
    const { token } = createToken(store.tokens, "ci");
    const [bytes] = is("random").filter(
      ({ was }) => Buffer.from(was, "latin1").toString("base64url") === token.slice(4),
    );
    expect(bytes && isZero(bytes)).toBe(true);
  });

  test("what a guest was sent, once the kernel has it", async () => {
    const { ours, theirs } = await sockets();
    const sent: Buffer[] = [];
    const write = ours.write.bind(ours) as (chunk: Buffer, done?: () => void) => boolean;
    ours.write = ((chunk: Buffer, done?: () => void) => {
      sent.push(chunk);
      return write(chunk, done);
    }) as typeof ours.write;
    const got = new Map<string, string>();
    const reader = new FrameReader();
    theirs.on("data", (chunk: Buffer) => {
      for (const { type, payload } of reader.push(chunk)) {
        if (type === FrameType.set)
          for (const [key, value] of decodeRecords(payload)) if (key === Key.env) got.set(...parted(String(value)));
        if (type === FrameType.run) theirs.write(encodeFrame(FrameType.started));
      }
    });
    const agent = new GuestAgent(ours);
    const env = { DB: "a password", LONG: "x".repeat(40_000), LONGER: "y".repeat(40_000) };
    const config = {
      ...{ hostname: "m", args: ["/app"], env, user: "", workdir: "", ports: [], volumes: [] },
      network: { address: "", gateway: "", dns: "", hosts: [] },
    };
    await agent.run(config, AbortSignal.timeout(10_000));
    // The guest got all of it, and of what was sent, only frames without secrets are left.
    expect(Object.fromEntries(got)).toEqual(env);
    expect(sent.length).toBeGreaterThan(2);
    expect(sent.filter((frame) => frame.length > 100).map((frame) => frame.every((byte) => byte === 0))).toEqual([
      true,
      true,
    ]);
  });
});

test("bytes are wiped whatever becomes of them", () => {
  const bytes = Buffer.from("secret");
  expect(wiping(bytes, String)).toBe("secret");
  expect(bytes).toEqual(Buffer.alloc(6));
  const more = Buffer.from("secret");
  const fail = () => {
    throw new Error("failed");
  };
  expect(() => wiping(more, fail)).toThrow("failed");
  expect(more).toEqual(Buffer.alloc(6));
  expect(wiping(undefined, (none) => none)).toBeUndefined();
});

function parted(line: string): [string, string] {
  const at = line.indexOf("=");
  return [line.slice(0, at), line.slice(at + 1)];
}

async function sockets(): Promise<{ ours: Socket; theirs: Socket }> {
  const path = join(folder, "agent.sock");
  const server = createServer().listen(path);
  await once(server, "listening");
  const ours = connect(path);
  const [theirs] = (await once(server, "connection")) as [Socket];
  onTestFinished(() => {
    ours.destroy();
    theirs.destroy();
    server.close();
  });
  return { ours, theirs };
}
