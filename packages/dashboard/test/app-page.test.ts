/** Deploys, settings and logs of the dashboard, as pure rules. */
import type { Machine, MachineConfig, ServiceConfig } from "@hibernaut/client";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { LONGEST_LINE, LogLines, MOST_LINES, plainText } from "../src/data/log-lines.ts";
import { type Limit, limitChanges, limitText } from "../src/pages/app/limit-values.ts";
import { deployTargets } from "../src/pages/app/rollout-plan.ts";
import { changesOf, commonSettings, settingsOf, typedNumbers, withSettings } from "../src/pages/app/setting-values.ts";
import { partsOf, withParts } from "../src/pages/machine/update-values.ts";
import { machine } from "./a-machine.ts";

const named = (name: string, parts: Partial<Machine> = {}, metadata?: Record<string, string>) =>
  machine({ machine_id: name, name, config: { image: "i", ...(metadata && { metadata }) }, ...parts });
const inGroup = (name: string, parts: Partial<Machine> = {}) => named(name, parts, { hibernaut_process_group: "app" });

describe("a deploy", () => {
  test("changes machines that run first, in the order of their names", () => {
    const machines = [
      named("web-10"),
      named("web-1", { state: "suspended" }),
      named("web-2"),
      named("web-3", { state: "failed" }),
    ];
    expect(deployTargets(machines).map(({ name }) => name)).toEqual(["web-2", "web-3", "web-10", "web-1"]);
  });

  test("leaves alone what a deploy from an app file leaves alone, and what is going", () => {
    const machines = [
      inGroup("web"),
      named("by-hand"),
      named("command", {}, { hibernaut_release_command: "3" }),
      inGroup("old", { state: "destroying" }),
    ];
    expect(deployTargets(machines).map(({ name }) => name)).toEqual(["web"]);
    expect(deployTargets([named("by-hand")]).map(({ name }) => name)).toEqual(["by-hand"]);
  });
});

describe("settings", () => {
  const config: MachineConfig = {
    image: "i",
    env: { A: "1" },
    services: [
      { internal_port: 80, autostop: "suspend", keep_warm: 5, concurrency: { type: "requests", hard_limit: 9 } },
      { internal_port: 81 },
    ],
  };

  test("only what was changed is sent, and everything else of the configuration stays", () => {
    const before = settingsOf({ config });
    const changes = changesOf(before, { ...before, idle_timeout: 2, memory_mb: 512 });
    expect(changes).toEqual({ idle_timeout: 2, memory_mb: 512 });
    expect(withSettings(config, changes)).toEqual({
      ...config,
      guest: { memory_mb: 512 },
      services: config.services?.map((service) => ({ ...service, idle_timeout: 2 })),
    });
  });

  test("an empty field takes a value away", () => {
    const [service] = withSettings(config, { keep_warm: null, hard_limit: null, soft_limit: 4 }).services ?? [];
    expect(service).toEqual({
      internal_port: 80,
      autostop: "suspend",
      concurrency: { type: "requests", soft_limit: 4 },
    });
  });

  test("an emptied field that needs a value changes nothing, one that does not takes the value away", () => {
    expect(typedNumbers({ idle_timeout: "", keep_warm: "", soft_limit: "60" })).toEqual({
      keep_warm: null,
      soft_limit: 60,
    });
  });

  test("nothing changed is the same configuration", () => {
    expect(withSettings(config, {})).toEqual(config);
    expect(withSettings({ image: "i" }, {})).toEqual({ image: "i" });
  });

  test("what is written is read again", () => {
    fc.assert(
      fc.property(
        fc.record({
          autostop: fc.constantFrom("suspend", "stop", "off"),
          autostart: fc.boolean(),
          idle_timeout: fc.integer({ min: 1, max: 86_400 }),
          keep_warm: fc.option(fc.nat({ max: 86_400 })),
          min_machines_running: fc.nat({ max: 9 }),
          soft_limit: fc.integer({ min: 1, max: 99 }),
          hard_limit: fc.option(fc.integer({ min: 1, max: 99 })),
          memory_mb: fc.integer({ min: 128, max: 4096 }),
          cpus: fc.integer({ min: 1, max: 8 }),
        }),
        (settings) => {
          expect(settingsOf({ config: withSettings(config, settings) })).toEqual(settings);
        },
      ),
    );
  });

  test("of several machines, it is told in what they differ", () => {
    const other = withSettings(config, { idle_timeout: 9 });
    expect(commonSettings([{ config }, { config: other }])?.differing).toEqual(["idle_timeout"]);
    expect(commonSettings([])).toBeUndefined();
  });

  test("a service with another value than the one shown keeps it, and the form says so", () => {
    const [web, admin] = [80, 81].map((port) => ({ internal_port: port, idle_timeout: port, keep_warm: 5 }));
    const two: MachineConfig = { image: "i", services: [web, admin] as ServiceConfig[] };
    expect(commonSettings([{ config: two }])?.ofFirstService).toEqual(["idle_timeout"]);
    expect(withSettings(two, { idle_timeout: 9, keep_warm: 1 }).services).toEqual([
      { ...web, idle_timeout: 9, keep_warm: 1 },
      { ...admin, keep_warm: 1 },
    ]);
  });
});

describe("what others changed meanwhile stays", () => {
  test("when a machine is updated", () => {
    const shown = partsOf({ image: "shop:v1" });
    const present: MachineConfig = { image: "shop:v2", env: { A: "1" }, guest: { cpus: 2 } };
    expect(withParts(present, shown, { ...shown, memory_mb: 512 })).toEqual({
      image: "shop:v2",
      env: { A: "1" },
      guest: { cpus: 2, memory_mb: 512 },
    });
    expect(withParts(present, shown, { ...shown, image: "shop:v3" }).image).toBe("shop:v3");
  });

  test("when limits are changed", () => {
    const limits = {
      machines: 5,
      running: 2,
      cpus: 0,
      memory_mb: 0,
      volume_gb: 0,
      hostnames: 100,
      certificates: 100,
      previews: 0,
    };
    const quota = { limits, own: ["machines", "running"] };
    const texts: Partial<Record<Limit, string>> = { machines: "5", running: "", cpus: "4" };
    expect(limitChanges(quota, (name) => texts[name] ?? "")).toEqual({ running: null, cpus: 4 });
    expect(limitChanges(quota, (name) => limitText(quota, name))).toEqual({});
  });
});

describe("lines of a log", () => {
  const ALL = { machine: "", stream: "all" } as const;
  const line = (text: string) => ({ at: "2026-01-31T14:30:00Z", machine: "a1", stream: "stdout" as const, text });

  test("lose colors and what is not printed, and nothing else", () => {
    expect(plainText("\u001b[1;31merror\u001b[0m: \u001b]0;title\u0007<b>\tno</b>\r")).toBe("error: <b>\tno</b>");
    expect(plainText("x".repeat(LONGEST_LINE + 9))).toHaveLength(LONGEST_LINE + 1);
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(plainText(text)).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f]/);
      }),
    );
  });

  test("are bounded, and the newest stay", () => {
    const lines = new LogLines();
    for (let number = 1; number <= MOST_LINES * 3; number++) lines.add(line(`tick ${number}`));
    const kept = lines.matching("", ALL);
    expect([kept.length, kept.at(-1)?.text, lines.count]).toEqual([
      MOST_LINES,
      `tick ${MOST_LINES * 3}`,
      MOST_LINES * 3,
    ]);
    expect(new Set(kept.map(({ number }) => number)).size).toBe(MOST_LINES);
  });

  test("are found by words in any case", () => {
    const lines = new LogLines();
    for (const text of ["GET /a", "get /b", "POST /c"]) lines.add(line(text));
    expect(lines.matching(" Get ", ALL).map(({ text }) => text)).toEqual(["GET /a", "get /b"]);
  });
});
