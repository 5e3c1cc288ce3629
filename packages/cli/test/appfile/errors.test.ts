import { describe, expect, test } from "vitest";
import { findingText } from "../../src/appfile/findings.ts";
import { readAppFile } from "../../src/appfile/read.ts";

/** Everything said about a text, as a terminal would show it. */
function saidOf(text: string): string[] {
  return readAppFile(text).findings.map((finding) => findingText(finding, "f"));
}

const check = (line: string) => `[checks.a]\nport = 80\n${line}`;
const http = (...lines: string[]) => ["[http_service]", "internal_port = 80", ...lines].join("\n");

describe("errors say where, what and what to write instead", () => {
  test.each([
    ['app = "x"\n[env\n', /^f:2:\d+: error: Invalid TOML: /],
    ['app = "x"\napp = "y"\n', "f:2:1: error: Invalid TOML: trying to redefine an already defined table or value."],
    ["a = 1\nb = \n", /^f:2:\d+: error: Invalid TOML: /],
    ["app = 5", 'f:1:1: error: app: Use text in quotes, as in "value", not 5.'],
    ['env = "A=1"', 'f:1:1: error: env: Use a table, as in [[env]], not "A=1".'],
    ["[env]\n  D = 2024-01-01", 'f:2:3: error: env.D: Variables are text. Use quotes, as in "value".'],
    ['[env]\n"A=B" = "1"', 'f:2:1: error: env."A=B": "A=B" is not a valid name for a variable. Use a name without =.'],
    ['[env]\n"" = "1"', /^f:2:1: error: env\."": "" is not a valid name for a variable/],
    ['[env]\nA = "\\u0000"', /^f:2:1: error: env\.A: A variable has up to 32768 characters, and no zero byte/],
    ["[env]\nL = [1]", /^f:2:1: error: env\.L: Variables are text/],
    ['kill_signal = "TERM"', /^f:1:1: error: kill_signal: Unknown signal "TERM"\. Use one of signal\(7\)/],
    ['kill_timeout = "6m"', "f:1:1: error: kill_timeout: This is 360 seconds; the maximum is 300."],
    [
      'kill_timeout = "soon"',
      'f:1:1: error: kill_timeout: Use a duration with the units ms, s, m or h, as in "30s" or "1m30s", not "soon".',
    ],
    ["swap_size_mb = -1", /^f:1:1: error: swap_size_mb: Use a whole number from 0 to 32768, not -1\./],
    ["swap_size_mb = 9007199254740993", /not 9007199254740993\./],
    [
      '[processes]\n web = "sh -c \'x"',
      "f:2:2: error: processes.web: This command has an unclosed quote or a trailing backslash.",
    ],
    [
      '[processes]\n"my web" = "a"',
      'f:2:1: error: processes."my web": "my web" is not a valid name for a process group. Use 1 to 63 letters, digits, - and _, with no - or _ at either end.',
    ],
    ['[[processes]]\nname = ""\ncommand = "a"', /^f:2:1: error: processes\[0\]\.name: "" is not a valid name/],
    ["[[processes]]\ncmd = 1", /^f:1:3: error: processes\[0\]: The process has no `name`/],
    [
      http('processes = ["web"]'),
      /^f:3:1: error: http_service\.processes: Unknown process group `web`\. The file defines app\./,
    ],
    [
      http('force_https = true\ninternal_port2 = "x"').replace("80", '"eighty"'),
      /^f:2:1: error: http_service\.internal_port: .* not "eighty"\./,
    ],
    [
      http('replay_from = ["router", "a.b"]'),
      /^f:3:1: error: http_service\.replay_from: "a\.b" is not the name of an app: it must have 1 to 63 /,
    ],
    [
      http("[http_service.http_options.response.headers]", 'Content-Length = "1"'),
      /^f:4:1: error: http_service\.http_options\.response\.headers\.Content-Length: The header content-length cannot be set/,
    ],
    [http("[http_service.http_options.response.headers]", "X-A = 1"), /^f:4:1: error: .*X-A: Use a list of texts/],
    [http('placement = "fixed"'), /^f:3:1: error: http_service\.placement: .* Use one of: shared, pinned\./],
    [http().replace("80", "70000"), /a whole number from 1 to 65535, not 70000/],
    [
      http('auto_stop_machines = "sleep"'),
      'f:3:1: error: http_service.auto_stop_machines: Unknown value "sleep". Use one of: suspend, stop, off.',
    ],
    [http('idle_timeout = "2d"'), /^f:3:1: error: http_service\.idle_timeout: Use a duration/],
    [http('keep_warm = ""'), /^f:3:1: error: http_service\.keep_warm: Use whole seconds, as in "30s" or "5m", or 0/],
    [http("keep_warm = 0.4"), /^f:3:1: error: http_service\.keep_warm: Use whole seconds/],
    [http('keep_warm = "500ms"'), /^f:3:1: error: http_service\.keep_warm: Use whole seconds/],
    [http('keep_warm = "25h"'), "f:3:1: error: http_service.keep_warm: This is 90000 seconds; the maximum is 86400."],
    [http("idle_timeout = 0"), "f:3:1: error: http_service.idle_timeout: Use at least one second."],
    [http('concurrency = "many"'), /^f:3:1: error: http_service\.concurrency: Use a table/],
    [
      http("  [http_service.concurrency]\n  soft_limit = 30\n  hard_limit = 20"),
      /^f:4:3: error: http_service\.concurrency\.soft_limit: Exceeds `hard_limit` \(20\)/,
    ],
    ['[[vm]]\nsize = "huge"', /^f:2:1: error: vm\[0\]\.size: Unknown size "huge"/],
    ['[[vm]]\nsize = "performance-16x"', /^f:2:1: error: vm\[0\]\.size: This is 16 CPUs; a machine has up to 8/],
    ['[[vm]]\nmemory = "64mb"', "f:2:1: error: vm[0].memory: This is 64 MB; a machine has 128 to 32768 MB of memory."],
    ['[[vm]]\nmemory = "lots"', 'f:2:1: error: vm[0].memory: Use a size, as in "512mb" or "1gb", not "lots".'],
    ["[[vm]]\ncpus = 9", /^f:2:1: error: vm\[0\]\.cpus: Use a whole number from 1 to 8/],
    [
      '[mounts]\nsource = "d"',
      'f:1:2: error: mounts: The mount has no `destination`. Add the directory, as in destination = "/data".',
    ],
    [
      '[mounts]\nsource = "d"\ndestination = "/"',
      /^f:3:1: error: mounts\.destination: Use an absolute directory other than \//,
    ],
    [
      '[mounts]\nsource = "My-Data"\ndestination = "/data"',
      "f:2:1: error: mounts.source: `My-Data` is not a valid name for a volume. Use 1 to 63 characters from a-z, 0-9, _ and -, with a letter or a digit at either end.",
    ],
    [
      '[mounts]\nsource = "d"\ndestination = "/data"\ninitial_size = "10tb"',
      "f:4:1: error: mounts.initial_size: This is 10240 GB; a volume has up to 4096 GB.",
    ],
    [
      '[mounts]\nsource = "d"\ndestination = "/proc/d"',
      /^f:3:1: error: mounts\.destination: A volume cannot be mounted at \/proc\/d/,
    ],
    [
      '[[mounts]]\nsource = "d"\ndestination = "/data"\n[[mounts]]\nsource = "e"\ndestination = "/data/e"',
      /^f:6:1: error: mounts\[1\]\.destination: Two volumes cannot be mounted at \/data\/e/,
    ],
    ['schedule = "daily"', /^f:1:1: error: schedule: Use a table, as in \[\[schedule\]\], not "daily"/],
    [
      '[network.egress]\nallow = ["example.com"]',
      /^f:2:1: error: network\.egress\.allow: example.com is a name, .* Set `default` to deny/,
    ],
    ['[network.egress]\ndefault = "none"', /^f:2:1: error: network\.egress\.default: /],
    [
      '[backup]\ncommand = "dump \'x"',
      /^f:2:1: error: backup\.command: This command is empty, or has an unclosed quote/,
    ],
    ['[backup]\ntimeout = "1h"', /^f:2:1: error: backup\.timeout: This is 3600 seconds; the maximum is 1800/],
    ['[[backup.counts]]\nname = "orders"', /error: backup\.counts\[0\]\.command: A count needs a `command`/],
    ['[[backup.counts]]\nname = "Orders"\ncommand = "n"', /error: backup\.counts\[0\]\.name: Name what is counted/],
    ['[schedule]\ntimezone = "UTC"', /^f:1:2: error: schedule: The schedule has no `when`/],
    ['[schedule]\nwhen = "0 0 30 2 *"', /^f:2:1: error: schedule\.when: "0 0 30 2 \*" never runs/],
    ['[schedule]\nwhen = "daily"\ntimezone = "Mars"', /^f:3:1: error: schedule\.timezone: "Mars" is not a known time/],
    ['[restart]\npolicy = "sometimes"', /^f:2:1: error: restart\.policy: Unknown value "sometimes"/],
    [
      '[checks.a]\ntype = "tcp"',
      "f:1:9: error: checks.a: The check has no `port`, and there is no service to take one from. Add `port`.",
    ],
    ["checks.a = 1", "f:1:8: error: checks.a: Use a table, as in [a], not 1."],
    ['[[files]]\nlocal_path = "a"', /^f:1:3: error: files\[0\]\.guest_path: Use the absolute path of a file/],
    ['[[files]]\nguest_path = "/etc/"\nlocal_path = "a"', /^f:2:1: error: files\[0\]\.guest_path: Use the absolute/],
    ['[[files]]\nguest_path = "/a"', /^f:1:3: error: files\[0\]: The file has no content\. Use one of local_path, raw/],
    [
      '[[files]]\nguest_path = "/a"\nraw_value = ""\nlocal_path = "b"',
      /^f:1:3: error: files\[0\]: The file has local_path and raw_value\. Use one of/,
    ],
    ['[[files]]\nguest_path = "/a"\nraw_value = "no!"', /^f:3:1: error: files\[0\]\.raw_value: Use base64, as/],
    ['[deploy]\nrelease_command = "sh -c \'x"', /^f:2:1: error: deploy\.release_command: This command has an unclosed/],
    ['[deploy]\nrelease_command = "x"\nrelease_command_timeout = "0s"', /Use at least one second\./],
    [
      '[deploy]\nrelease_command = "x"\nrelease_command_timeout = "7h"',
      /This is 25200 seconds; the maximum is 21600\./,
    ],
    ['[deploy]\nrelease_command = "x"\n[deploy.release_command_vm]\nmemory = "1mb"', /a machine has 128 to 32768 MB/],
    ["[deploy]\nmax_unavailable = 0", /^f:2:1: error: deploy\.max_unavailable: Use a number above 0, not 0\./],
    ['app = "My Shop"', /^f:1:1: error: app: "My Shop" is not a valid name for an app: it must have 1 to 63/],
    [check('interval = "5"'), 'f:3:1: error: checks.a.interval: Add a unit, as in "5s" or "5ms".'],
    [
      check("interval = 5"),
      'f:3:1: error: checks.a.interval: This is 5 milliseconds; the minimum is 100. Write "5s" for seconds.',
    ],
    [check("timeout = 0"), /^f:3:1: error: checks\.a\.timeout: This is 0 milliseconds; the minimum is 100\. Write "/],
    [check('timeout = "0s"'), /^f:3:1: error: checks\.a\.timeout: This is 0 milliseconds/],
    [check('interval = "2h"'), "f:3:1: error: checks.a.interval: This is 7200 seconds; the maximum is 3600."],
    [
      `${http()}\n[[http_service.checks]]\ntimeout = "0ms"`,
      /^f:4:1: error: http_service\.checks\[0\]\.timeout: This is 0 milliseconds/,
    ],
    ['[deploy]\nwait_timeout = "0s"', "f:2:1: error: deploy.wait_timeout: Use at least one second."],
    ['[deploy]\nstrategy = "magic"', /^f:2:1: error: deploy\.strategy: Unknown value "magic"/],
  ])("%j", (text, message) => {
    const { file, findings } = readAppFile(text);
    expect(file).toBeUndefined();
    const [first = ""] = findings
      .filter(({ severity }) => severity === "error")
      .map((finding) => findingText(finding, "f"));
    if (typeof message === "string") expect(first).toBe(message);
    else expect(first).toMatch(message);
  });

  test("all of a file at once, in the order of the text", () => {
    expect(
      saidOf('[http_service]\ninternal_port = 0\ntls_options = 1\n[[vm]]\ncpus = "x"').map((line) => line.slice(0, 8)),
    ).toEqual(["f:2:1: e", "f:3:1: w", "f:5:1: e"]);
  });
});

describe("durations of checks that mean what they say", () => {
  test.each([
    ["interval = 10000", { interval: 10 }],
    ['interval = "100ms"', { interval: 0.1 }],
    ['interval = "1h"', { interval: 3600 }],
    ['timeout = "2s"', { timeout: 2 }],
    // No time in which failures don't count.
    ['grace_period = "0s"', { gracePeriod: 0 }],
    ["grace_period = 0", { gracePeriod: 0 }],
  ])("%s", (line, expected) => {
    expect(readAppFile(check(line))).toMatchObject({ findings: [], file: { checks: [expected] } });
  });
});

describe("files that are named, and missing", () => {
  const missing = (path: string) => (path === "there.txt" ? undefined : "ENOENT");
  const said = (text: string) => readAppFile(text, missing).findings.map((finding) => findingText(finding, "f"));

  test.each([
    [
      '[[files]]\nguest_path = "/a"\nlocal_path = "gone.txt"',
      "f:3:1: error: files[0].local_path: gone.txt cannot be read (ENOENT). Paths are relative to the directory of the app file.",
    ],
    ['[[files]]\nguest_path = "/a"\nlocal_path = "there.txt"', undefined],
    [
      '[build]\ndockerfile = "Dockerfile.web"',
      "f:2:1: error: build.dockerfile: Dockerfile.web cannot be read (ENOENT). Paths are relative to the directory of the app file.",
    ],
    [
      '[build]\nbuilder = "dockerfile"',
      "f:2:1: error: build.builder: The directory of the app file has no Dockerfile. Add one, or name one with `dockerfile`.",
    ],
    ['[build]\nignorefile = ".ignore"', /^f:2:1: error: build\.ignorefile: \.ignore cannot be read \(ENOENT\)\./],
    // Nothing is built.
    ['[build]\nimage = "a:1"\ndockerfile = "Dockerfile.web"', undefined],
    ['[build]\ndockerfile = "there.txt"\nbuilder = "dockerfile"', undefined],
  ])("%j", (text, message) => {
    if (message === undefined) expect(said(text)).toEqual([]);
    else expect(said(text)).toEqual([typeof message === "string" ? message : expect.stringMatching(message)]);
  });

  test("are the business of who looks for them", () => {
    expect(saidOf('[build]\ndockerfile = "gone"\n[[files]]\nguest_path = "/a"\nlocal_path = "gone"')).toEqual([]);
  });
});

describe("unknown keys", () => {
  test.each([
    [http("auto_stop_machine = true"), "Did you mean `auto_stop_machines`?"],
    [http("auto-stop-machines = true"), "Did you mean `auto_stop_machines`?"],
    ["[https_service]\ninternal_port = 1", "Did you mean `http_service`?"],
    ["[build]\nkill_timeout = 5", "It belongs at the top of the file, before the first [table]."],
    ["internal_port = 1", "It belongs in [http_service]."],
    ["[scaling]\nx = 1", "Unknown key; it has no effect."],
  ])("%j", (text, end) => {
    const { findings } = readAppFile(text);
    expect(findings).toMatchObject([{ severity: "warning" }]);
    expect(findings[0]?.message.endsWith(end), findings[0]?.message).toBe(true);
  });
});

describe("keep_warm", () => {
  const warned = [
    'f:3:1: warning: http_service.keep_warm: No effect on an idle machine, which is not suspended: only `hibernaut machine suspend` then keeps one warm. Set auto_stop_machines = "suspend".',
  ];
  test.each([
    [['keep_warm = "5m"'], warned],
    [['keep_warm = "5m"', 'auto_stop_machines = "stop"'], warned],
    [['keep_warm = "5m"', 'auto_stop_machines = "suspend"'], []],
    [["keep_warm = 0"], []],
  ])("%j", (lines, expected) => {
    expect(saidOf(http(...lines))).toEqual(expected);
  });

  test("of one port has an effect where another one suspends the machine", () => {
    const second = '\n[[services]]\ninternal_port = 90\nkeep_warm = "5m"';
    const said = saidOf(http('auto_stop_machines = "suspend"') + second);
    expect(said.filter((line) => line.includes("keep_warm"))).toEqual([]);
  });
});

test("machines that sleep and are not woken by requests are allowed, with a warning", () => {
  const { file, findings } = readAppFile(http("auto_stop_machines = true", "auto_start_machines = false"));
  expect(file?.services[0]?.config).toMatchObject({ autostop: "stop", autostart: false });
  expect(findings.map((finding) => findingText(finding, "f"))).toEqual([
    "f:4:1: warning: http_service.auto_start_machines: Requests do not wake a machine that sleeps: only `hibernaut machine start` and the API do.",
  ]);
});

test("names that mean something to JavaScript are keys like others", () => {
  const { file, findings } = readAppFile('constructor = 1\n[env]\n__proto__ = "a"\ntoString = "b"\n');
  expect(Object.entries(file?.env ?? {})).toEqual([
    ["__proto__", "a"],
    ["toString", "b"],
  ]);
  expect(findings.map(({ path }) => path)).toEqual(["constructor"]);
});
