/** What decides about sandboxes: pages of lists, tokens, the end of their time, and whom a request is for. */
import { createHash } from "node:crypto";
import type { MachineRecord } from "@hibernaut/domain/machine";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { addressOf } from "../src/door/address.ts";
import { sandboxOf } from "../src/life/chosen.ts";
import { Expiry } from "../src/life/expiry.ts";
import { pageOf } from "../src/life/page.ts";
import { SandboxTokens } from "../src/life/tokens.ts";
import type { SandboxView } from "../src/life/view.ts";

const START = Date.parse("2026-11-27T08:00:00Z");

function view(
  index: number,
  {
    state = "running",
    metadata = {},
    endS = 60,
  }: Partial<{ state: MachineRecord["state"]; metadata: Record<string, string>; endS: number }> = {},
): SandboxView {
  const sandbox = {
    ...sandboxOf(
      {
        template: "base",
        timeoutS: endS,
        onTimeout: "kill",
        keepMemory: true,
        autoResume: false,
        secure: true,
        metadata,
        env: {},
      },
      START,
    ),
    started_at: new Date(START + Math.floor(index / 2) * 1000).toISOString(),
    paused: state === "suspended",
  };
  const id = index.toString(16).padStart(14, "0");
  return { record: { id, app: "agents", state, config: { image: "i" }, sandbox } as unknown as SandboxView["record"] };
}

describe("pages", () => {
  test("every sandbox is on exactly one page, in either order, also when several began in one moment", () => {
    fc.assert(
      fc.property(
        fc.nat(30),
        fc.integer({ min: 1, max: 7 }),
        fc.constantFrom("asc" as const, "desc" as const),
        (count, limit, order) => {
          const all = Array.from({ length: count }, (_, index) => view(index));
          const seen: string[] = [];
          for (let after: string | undefined, more = true; more; ) {
            const { page, next } = pageOf(all, { limit, order, ...(after !== undefined && { after }) });
            seen.push(...page.map(({ record }) => record.id));
            after = next;
            more = next !== undefined;
          }
          const ids = all.map(({ record }) => record.id);
          expect(seen).toEqual(order === "asc" ? ids : ids.toReversed());
        },
      ),
    );
  });

  test("labels are compared once decoded, and running ones are counted before the page is cut", () => {
    const all = [
      view(1, { metadata: { "a b": "x&y" } }),
      view(2, { metadata: { "a b": "x&y" }, state: "suspended" }),
      view(3),
    ];
    const { page, running } = pageOf(all, { limit: 1, metadata: "a%20b=x%26y" });
    expect(page.map(({ record }) => record.id)).toEqual([all[1]?.record.id]);
    expect(running).toBe(1);
    expect(() => pageOf(all, { limit: 1, after: "nonsense" })).toThrow(/nextToken/);
  });
});

describe("tokens", () => {
  const tokens = new SandboxTokens(Buffer.alloc(32, 1));
  const one = "00000000000001";
  const signature = (text: string) => `v1_${createHash("sha256").update(text).digest("base64").replace(/=+$/, "")}`;

  test("a token opens one sandbox, for one use, on one platform", () => {
    const token = tokens.of(one, "inside");
    expect(tokens.opens(one, "inside", token)).toBe(true);
    expect(tokens.opens(one, "traffic", token)).toBe(false);
    expect(tokens.opens("00000000000002", "inside", token)).toBe(false);
    expect(new SandboxTokens(Buffer.alloc(32, 2)).opens(one, "inside", token)).toBe(false);
    expect(tokens.opens(one, "inside", undefined)).toBe(false);
  });

  test("a signed URL does what it was signed for, until it ends", () => {
    const token = tokens.of(one, "inside");
    const signed = {
      path: "a.txt",
      user: "",
      signature: signature(`a.txt:read::${token}:${START / 1000 + 10}`),
      expiration: START / 1000 + 10,
    };
    expect(tokens.signed(one, "read", signed, START)).toBe(true);
    expect(tokens.signed(one, "write", signed, START)).toBe(false);
    expect(tokens.signed(one, "read", { ...signed, path: "b.txt" }, START)).toBe(false);
    expect(tokens.signed(one, "read", signed, START + 10_000)).toBe(false);
    expect(tokens.signed(one, "read", { ...signed, expiration: Number.NaN }, START)).toBe(false);
  });
});

describe("the end of their time", () => {
  beforeEach(() => void vi.useFakeTimers({ now: START }));
  afterEach(() => void vi.useRealTimers());

  test("each ends in time, a paused one never, one that stopped by itself like the others, and one that could not be ended is tried again", () => {
    const all = [
      view(1, { endS: 5 }),
      view(2, { endS: 10 }),
      view(3, { endS: 1, state: "suspended" }),
      view(4, { endS: 5, state: "failed" }),
    ];
    const ended: string[] = [];
    let stuck: string | undefined = all[1]?.record.id;
    const log = { warn: vi.fn<(details: object, message: string) => void>() };
    const expiry = new Expiry({
      all: () => [...all],
      log,
      end({ record }) {
        if (record.id === stuck) {
          stuck = undefined;
          throw new Error("the disk is full");
        }
        ended.push(record.id);
        record.state = "destroyed";
        all.splice(
          all.findIndex((one) => one.record.id === record.id),
          1,
        );
      },
    });
    expiry.look();
    vi.advanceTimersByTime(4999);
    expect(ended).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(ended).toHaveLength(2);
    vi.advanceTimersByTime(30_000);
    vi.advanceTimersByTime(30_000);
    expect(ended).toHaveLength(3);
    expect(log.warn).toHaveBeenCalledOnce();
    expiry.close();
    expect(vi.getTimerCount()).toBe(0);
  });
});

test("a request is for the sandbox that its headers or its name say, and else for control", () => {
  const at = (host: string, headers = {}) => addressOf({ host, ...headers }, "sbx.test:7070");
  expect(at("3000-0123456789abcd.sbx.test:7070")).toEqual({ id: "0123456789abcd", port: 3000 });
  expect(at("3000-0123456789ABCD.SBX.test")).toEqual({ id: "0123456789abcd", port: 3000 });
  expect(at("70000-0123456789abcd.sbx.test")).toEqual({ id: "0123456789abcd", port: 0 });
  for (const host of [
    "api.sbx.test",
    "sbx.test",
    "3000-0123456789abcd.evil.test",
    "3000-0123456789abcd.evil-sbx.test",
    "x.3000-0123456789abcd.sbx.test",
  ])
    expect(at(host)).toBeUndefined();
  expect(at("127.0.0.1:7070", { "e2b-sandbox-id": "x", "e2b-sandbox-port": "80" })).toEqual({ id: "x", port: 80 });
  expect(at("127.0.0.1:7070", { "e2b-sandbox-id": "x" })).toEqual({ id: "x", port: 49_983 });
});
