import { nearest } from "@hibernaut/lib/nearest";
import { Compile } from "typebox/compile";
import { describe, expect, test } from "vitest";
import { explainRefusals } from "../src/explain.ts";
import { CreateMachineBody } from "../src/routes/machines.schemas.ts";

const validator = Compile(CreateMachineBody);

function explain(body: unknown) {
  return explainRefusals(validator.Errors(body), CreateMachineBody, "body");
}

function config(changes: Record<string, unknown>) {
  return { config: { image: "x", ...changes } };
}

describe("refusals in words", () => {
  test.each([
    [
      config({ services: [{ internal_port: 80, internal_prot: 1 }] }),
      "Unknown key `config.services[0].internal_prot`; did you mean `internal_port`?",
    ],
    [config({ metdata: {} }), "Unknown key `config.metdata`; did you mean `metadata`?"],
    [config({ memory_mb: 512 }), "Unknown key `config.memory_mb`; did you mean `config.guest.memory_mb`?"],
    [config({ guest: { memory: 512 } }), "Unknown key `config.guest.memory`; did you mean `memory_mb`?"],
    [config({ guest: { zzzz: 512 } }), "Unknown key `config.guest.zzzz`; known here: `cpus`, `memory_mb`."],
    [{ config: {} }, "`config.image` is missing."],
    [{ config: null }, "`config` must be an object."],
    [null, "The request body must be an object."],
    [config({ guest: { cpus: "2" } }), "`config.guest.cpus` must be an integer."],
    [config({ guest: { cpus: 99 } }), "`config.guest.cpus` must be <= 8."],
    [
      config({ services: [{ internal_port: 80, autostop: "sleep" }] }),
      "`config.services[0].autostop` must be one of `suspend`, `stop`, `off`.",
    ],
    [config({ env: { A: 1 } }), "`config.env.A` must be a string."],
  ])("%j", (body, message) => {
    expect(explain(body)).toMatchObject({ code: "invalid_argument", message });
  });

  test("details hold the place of the problem as data", () => {
    expect(explain(config({ metdata: {} })).details).toEqual({
      in: "body",
      problems: [expect.objectContaining({ path: "config.metdata", nearest: "metadata" })],
    });
  });

  test("many problems, or a very long key, still make a short reply", () => {
    const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`key${index}`, 1]));
    expect(explain(many).message.length).toBeLessThan(1000);
    expect(explain({ ["k".repeat(500_000)]: 1 }).message.length).toBeLessThan(1000);
  });
});

describe("the nearest word", () => {
  test.each([
    ["internal_prot", "internal_port"],
    ["port", "internal_port"],
    ["Protocol", "protocol"],
    ["autostrat", "autostart"],
    ["xyz", undefined],
    ["", undefined],
    ["p".repeat(1000), undefined],
  ])("%s -> %s", (word, expected) => {
    expect(nearest(word, ["protocol", "internal_port", "autostop", "autostart"])).toBe(expected);
  });
});
