/** A plan as text. Pure. */
import type { Finding, ProjectPlan, ServicePlan } from "@hibernaut/compose";
import { durationText } from "../appfile/quantities.ts";
import { count, lines, table } from "../terminal.ts";
import { findingText, inLine, type Loaded } from "./load.ts";

/** The whole plan: what each service becomes, and what is not carried. */
export function planText({ plan, findings }: Loaded): string {
  const rows = plan.apps.map((app) => [
    inLine(app.service),
    app.app,
    inLine(imageText(app)),
    reachedText(app),
    memoryText(app),
    sleepText(app),
  ]);
  return lines(
    `${titleOf(plan)}: ${count(plan.apps.length, "app")} in the network ${plan.name}.`,
    table([["SERVICE", "APP", "IMAGE", "REACHED", "MEMORY", "SLEEPS"], ...rows]),
    findings.length > 0 && ["\nWhat is carried in another way, or not at all:", ...findings.map(indented)].join("\n"),
    `\nNext: hibernaut compose up${plan.preview === undefined ? "" : ` --preview ${plan.preview.name}`}`,
  );
}

/** What the plan is of. */
export function titleOf({ name, preview }: ProjectPlan): string {
  return preview === undefined ? `Project ${name}` : `Preview ${preview.name} of project ${preview.of}`;
}

function indented(finding: Finding): string {
  return `  ${findingText(finding)}`;
}

function imageText({ image, build }: ServicePlan): string {
  return image ?? `built from ${build?.directory ?? ""}`;
}

function memoryText({ config }: ServicePlan): string {
  return `${config.guest?.memory_mb ?? ""} MB`;
}

function reachedText({ ports: { http, tcp, inside }, runsOnce }: ServicePlan): string {
  if (runsOnce) return "-";
  const parts = [
    http && `HTTP (port ${http.internal})`,
    ...tcp.map(({ published, internal }) => `TCP ${published}${published === internal ? "" : ` (port ${internal})`}`),
    inside.length > 0 && `by the project: ${inside.join(", ")}`,
  ];
  return parts.filter((part) => part !== undefined && part !== false).join("; ") || "-";
}

function sleepText({ config, sleep, runsOnce }: ServicePlan): string {
  if (runsOnce) return "ends by itself";
  if (config.worker_idle_timeout !== undefined) return `after ${durationText(config.worker_idle_timeout)} of silence`;
  if (sleep.autostop === "off" || config.services === undefined) return "never";
  return `after ${durationText(sleep.idleTimeout)}${sleep.autostop === "stop" ? ", stopped" : ""}`;
}
