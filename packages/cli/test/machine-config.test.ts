import { describe, expect, test } from "vitest";
import { CONFIG_OPTIONS, changesConfig, withOptions } from "../src/machine-config.ts";

describe("options change a configuration", () => {
  test.each([
    [{}, {}],
    [{ image: "y" }, { image: "y" }],
    [{ memory: 512 }, { guest: { memory_mb: 512 } }],
    [{ env: ["A=1", "B=x=y", "C="] }, { env: { A: "1", B: "x=y", C: "" } }],
    [{ port: 80 }, { services: [{ protocol: "http", internal_port: 80 }] }],
    [
      { port: 80, autostop: "suspend" as const, autostart: "off" as const, idleTimeout: 5, minRunning: 1 },
      {
        services: [
          {
            protocol: "http",
            internal_port: 80,
            autostop: "suspend",
            autostart: false,
            idle_timeout: 5,
            min_machines_running: 1,
          },
        ],
      },
    ],
    [{ restart: "always" as const, maxRetries: 3 }, { restart: { policy: "always", max_retries: 3 } }],
    [{ check: "/health" }, { checks: { http: { type: "http", path: "/health" } } }],
    [
      { port: 80, softLimit: 5, hardLimit: 9 },
      { services: [{ protocol: "http", internal_port: 80, concurrency: { soft_limit: 5, hard_limit: 9 } }] },
    ],
    [
      { fileLiteral: ["/etc/motd=a=b"], fileSecret: ["/run/key=KEY"], fileLocal: ["/gone="] },
      {
        files: [
          { guest_path: "/etc/motd", raw_value: "YT1i" },
          { guest_path: "/run/key", secret_name: "KEY" },
        ],
      },
    ],
    [
      { metadata: ["team=a"], schedule: "0 3 * * *", scheduleTimezone: "Europe/Berlin" },
      { metadata: { team: "a" }, schedule: "0 3 * * *", schedule_timezone: "Europe/Berlin" },
    ],
  ])("%j", (options, expected) => {
    expect(withOptions({ image: "x" }, options)).toEqual({ image: "x", ...expected });
  });

  test("and replace and remove files by their paths", () => {
    const before = {
      image: "x",
      files: [
        { guest_path: "/a", raw_value: "YQ==" },
        { guest_path: "/b", secret_name: "B" },
      ],
    };
    expect(withOptions(before, { fileSecret: ["/a=A"], fileLocal: ["/b="] }).files).toEqual([
      { guest_path: "/a", secret_name: "A" },
    ]);
    expect(withOptions(before, {}).files).toEqual(before.files);
    expect(() => withOptions(before, { fileLocal: ["/c=/no/such"] })).toThrowError(
      /\/no\/such cannot be read \(ENOENT\)/,
    );
    expect(() => withOptions(before, { fileSecret: ["/c="] })).toThrowError(/takes the name of a secret/);
    expect(() => withOptions(before, { fileLiteral: ["c=x"] })).toThrowError(/--file-literal takes \/path/);
  });

  test("and remove a schedule, with its time zone", () => {
    const before = { image: "x", schedule: "daily", schedule_timezone: "Europe/Berlin" };
    expect(withOptions(before, { schedule: "off" })).toEqual({ image: "x" });
    expect(() => withOptions(before, { schedule: "off", scheduleTimezone: "UTC" })).toThrowError(/--schedule off/);
    expect(changesConfig({ schedule: "off" })).toBe(true);
  });

  test("and leave alone what they do not name", () => {
    const before = {
      image: "x",
      guest: { cpus: 2, memory_mb: 256 },
      env: { A: "1", B: "2" },
      init: { cmd: ["run"] },
      services: [
        { internal_port: 80, autostart: true },
        { internal_port: 81, protocol: "tcp" as const },
      ],
    };
    expect(withOptions(before, { memory: 512, env: ["B=3"], port: 8080 })).toEqual({
      ...before,
      guest: { cpus: 2, memory_mb: 512 },
      env: { A: "1", B: "3" },
      services: [
        { internal_port: 8080, autostart: true },
        { internal_port: 81, protocol: "tcp" },
      ],
    });
    expect(withOptions(before, { autostop: "stop" }).services).toMatchObject([
      { autostop: "stop" },
      { autostop: "stop" },
    ]);
  });

  test("a TCP port has its handlers, and loses them without", () => {
    const tcp = withOptions({ image: "x" }, { tcp: 5432, tcpHandler: ["pg_tls", "proxy_proto"] });
    const service = { protocol: "tcp", internal_port: 5432 };
    expect(tcp.services).toEqual([{ ...service, ports: [{ port: 5432, handlers: ["pg_tls", "proxy_proto"] }] }]);
    expect(withOptions(tcp, { tcp: 5432 }).services).toEqual([{ ...service, ports: [{ port: 5432 }] }]);
    expect(() => withOptions({ image: "x" }, { tcp: 1, tcpHandler: ["ssl"] })).toThrow(
      "--tcp-handler takes one of tls, pg_tls, tls_passthrough, proxy_proto, not `ssl`.",
    );
    expect(() => withOptions({ image: "x" }, { port: 1, tcpHandler: ["tls"] })).toThrow("Add --tcp.");
  });

  test("wrong ones are usage errors", () => {
    expect(() => withOptions({ image: "x" }, { env: ["A"] })).toThrow("--env takes NAME=value, not `A`.");
    expect(() => withOptions({ image: "x" }, { autostop: "stop" })).toThrow("Add --port.");
  });

  test("and it is known whether any was given", () => {
    expect(changesConfig({})).toBe(false);
    for (const options of [
      { image: "y" },
      { env: ["A=1"] },
      { port: 1 },
      { autostop: "off" as const },
      { maxRetries: 0 },
    ]) {
      expect(changesConfig(options)).toBe(true);
    }
    // The waiting options change nothing.
    expect(changesConfig({ waitTimeout: 5, yes: true } as object)).toBe(false);
  });
});

test("every option has words", () => {
  for (const { flags, description } of CONFIG_OPTIONS)
    expect(`${flags} ${description}`).toMatch(/^(\S.*)?--[a-z][a-z0-9-]+ <.*> \w/);
});
