/** The files in examples/monitoring: alerts that fire and do not fire, and a dashboard of metrics that exist. */
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { NOUNS } from "../../../cli/src/commands.ts";
import { runningMachine } from "../helpers/fake-world.ts";
import { tempFolder } from "../helpers/temp.ts";
import { checkDashboard, dashboard, expressionsOf } from "./dashboard.ts";
import { documented, MONITORING, ROOT } from "./documents.ts";
import { flawsOf, promtool } from "./promtool.ts";
import { metricsWorld } from "./world.ts";

const read = (name: string) => readFileSync(join(MONITORING, name), "utf8");

interface Alert {
  name: string;
  expr: string;
  text: string;
}

/** The rules, as far as this test needs them: promtool has read the file before. */
function alerts(): Alert[] {
  const [, ...parts] = read("hibernaut.rules.yml").split(/^ {6}- alert: /m);
  return parts.map((text) => {
    const [name = ""] = text.split("\n", 1);
    const expr = /^ {8}expr: (?:>-\n {10})?(.+)$/m.exec(text)?.[1] ?? "";
    return { name, expr, text };
  });
}

/** The metrics and labels of an expression that the document does not have, or not with this value. */
function unknownIn(expression: string): string[] {
  const known = documented();
  const found: string[] = [];
  for (const [, name = "", braces = ""] of expression.matchAll(/\b((?:hibernaut|process)_[a-z_]+)(?:\{([^}]*)\})?/g)) {
    const metric = known.get(name) ?? known.get(name.replace(/_(?:bucket|sum|count)$/, ""));
    if (metric === undefined) found.push(name);
    for (const [, label = "", operator = "", value = ""] of braces.matchAll(/(\w+)(=~|!~|!=|=)"([^"]*)"/g)) {
      if (label === "job" || label === "instance" || metric === undefined) continue;
      const values = metric.labels.get(label);
      if (!metric.labels.has(label)) found.push(`${name}{${label}}`);
      const said = operator.includes("~") ? value.split("|") : [value];
      if (values !== undefined) found.push(...said.filter((one) => !values.has(one)).map((one) => `${name} ${one}`));
    }
  }
  return found;
}

describe("alerts", () => {
  test("promtool accepts the rules and the configuration", () => {
    const rules = promtool(["check", "rules", "hibernaut.rules.yml"], { cwd: MONITORING });
    expect(rules, rules.output).toMatchObject({ code: 0 });
    const config = promtool(["check", "config", "--syntax-only", "prometheus.yml"], { cwd: MONITORING });
    expect(config, config.output).toMatchObject({ code: 0 });
  });

  test("each fires, and does not fire, as its unit tests say", () => {
    const run = promtool(["test", "rules", "hibernaut.rules.test.yml"], { cwd: MONITORING });
    expect(run, run.output).toMatchObject({ code: 0 });
    const tests = read("hibernaut.rules.test.yml");
    for (const { name } of alerts()) {
      const fires = new RegExp(`alertname: ${name}\\n\\s+exp_alerts:\\n\\s+- exp_labels`);
      expect(tests, `no test lets ${name} fire`).toMatch(fires);
    }
  });

  test("a test that expects something else fails", async () => {
    const folder = await tempFolder("rules");
    await writeFile(join(folder, "hibernaut.rules.yml"), read("hibernaut.rules.yml").replace("for: 2m", "for: 30m"));
    await writeFile(join(folder, "tests.yml"), read("hibernaut.rules.test.yml"));
    expect(promtool(["test", "rules", "tests.yml"], { cwd: folder }).code).toBe(1);
  });

  test.each(alerts())("$name uses metrics that exist, says what to do, and has a section", ({ name, expr, text }) => {
    expect(expr).not.toBe("");
    expect(unknownIn(expr)).toEqual([]);
    for (const annotation of ["summary", "description", "runbook"]) expect(text).toContain(`          ${annotation}: `);
    expect(text).toMatch(/severity: (critical|warning)$/m);
    expect(text).toContain(`runbook: docs/metrics.md#${name.toLowerCase()}`);
    expect(readFileSync(join(ROOT, "docs/metrics.md"), "utf8")).toContain(`\n### ${name}\n`);
  });

  test("their commands exist, with their options", () => {
    const flags = (options: readonly { flags: string }[] = []) => options.map((option) => option.flags).join(" ");
    const all = NOUNS.flatMap(({ name, commands, nouns = [] }) => [
      { name, commands },
      ...nouns.map((below) => ({ name: `${name} ${below.name}`, commands: below.commands })),
    ]);
    const known = new Map(
      all.flatMap((noun) =>
        noun.commands.map((command) => [`${noun.name} ${command.name}`.trim(), flags(command.options)]),
      ),
    );
    const texts = alerts().map(({ text }) => text.replace(/\s+/g, " "));
    const commands = texts.flatMap((text) => [...text.matchAll(/`hibernaut ([^`]+)`/g)].map(([, words = ""]) => words));
    expect(commands.length).toBeGreaterThan(15);
    for (const words of commands) {
      const name = [...known.keys()].find((each) => words === each || words.startsWith(`${each} `));
      expect(name, `hibernaut ${words}`).toBeDefined();
      for (const [flag] of words.matchAll(/--[a-z-]+/g))
        if (flag !== "--app") expect(known.get(name ?? ""), `hibernaut ${words}`).toContain(flag);
    }
  });
});

describe("the dashboard", () => {
  test("has the shape that Grafana reads, with its data source as a variable", () => {
    expect(checkDashboard(dashboard())).toEqual([]);
  });

  test("every expression is PromQL, and uses metrics that exist", async () => {
    const expressions = expressionsOf(dashboard());
    expect(expressions.length).toBeGreaterThan(30);
    expect(expressions.flatMap(({ expr }) => unknownIn(expr))).toEqual([]);
    const queries = dashboard().templating.list.map((variable) => JSON.stringify(variable).replaceAll('\\"', '"'));
    expect(queries.join("\n")).toContain("hibernaut_usage_machine_seconds_total");
    expect(queries.flatMap(unknownIn)).toEqual([]);
    const folder = await tempFolder("dashboard");
    const rules = expressions.map(
      ({ expr }, index) => `      - record: panel:${index}\n        expr: ${quoted(expr)}\n`,
    );
    await writeFile(join(folder, "panels.yml"), `groups:\n  - name: panels\n    rules:\n${rules.join("")}`);
    const checked = promtool(["check", "rules", "panels.yml"], { cwd: folder });
    expect(checked, checked.output).toMatchObject({ code: 0 });
    expect(checked.output).toContain(`${expressions.length} rules found`);
  });
});

/** In YAML, with what Grafana puts in place of its variables. */
function quoted(expression: string): string {
  return JSON.stringify(expression.replaceAll("$__rate_interval", "5m").replaceAll(/\$(instance|app)\b/g, ".*"));
}

test("promtool finds nothing wrong with what the platform prints", async () => {
  const world = await metricsWorld();
  await runningMachine(world.platform);
  expect(flawsOf(await world.scrape())).toEqual([]);
  expect(flawsOf("# TYPE hits counter\nhits 1\n")).not.toEqual([]);
});
