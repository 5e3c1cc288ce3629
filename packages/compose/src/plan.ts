/** What a project becomes: an app for each service, in a network that they share. */
import { MOST_WAKES } from "@hibernaut/domain/app-network";
import type { Findings } from "./findings.ts";
import type { Disk, Project } from "./project.ts";
import type { Dependency } from "./relations.ts";
import { planService, type ServicePlan } from "./service.ts";

/** The apps of a project. */
export interface ProjectPlan {
  /** Of the project, and of the network that its apps share. */
  name: string;
  /** Each after those that it depends on. */
  apps: readonly ServicePlan[];
  /** Set if the apps are those of a preview, with its name and that of the project. */
  preview?: { name: string; of: string };
}

/** Returns the plan of a project. What is not carried is among the findings; after an error there, it is not to be carried out. */
export function planProject(project: Project, disk: Disk, findings: Findings): ProjectPlan {
  const users = new Map<string, string>();
  const plans = new Map(
    [...project.services].map(([name, service]) => [
      name,
      planService(name, service, { project, disk, users, findings }),
    ]),
  );
  for (const [name, plan] of plans) {
    const twin = [...plans.values()].find((other) => other !== plan && other.app === plan.app);
    if (twin !== undefined)
      findings.error(
        `services.${name}`,
        `Its app would be called ${plan.app}, as that of ${twin.service}. Rename one.`,
      );
    giveAliases(plans, plan, findings);
  }
  const isDone = new Set(
    [...plans.values()].flatMap(({ dependsOn }) =>
      dependsOn.filter(({ condition }) => condition === "completed").map(({ service }) => service),
    ),
  );
  const apps = inOrder(plans, project, findings).map((plan) => (isDone.has(plan.service) ? runsOnce(plan) : plan));
  for (const plan of apps) tellSleepless(plan, findings, isNeeded(plan, apps));
  for (const plan of apps) plan.wakes = neededBy(plan, apps);
  return { name: project.name, apps };
}

/** Those that wake with a service, because it depends on them, or something does that it depends on. */
function neededBy(plan: ServicePlan, apps: readonly ServicePlan[]): string[] {
  const needed = new Set<ServicePlan>();
  const visit = ({ dependsOn }: ServicePlan): void => {
    for (const { service } of dependsOn) {
      const other = apps.find((one) => one.service === service);
      if (other === undefined || needed.has(other)) continue;
      needed.add(other);
      visit(other);
    }
  };
  visit(plan);
  const asleep = [...needed].filter(
    (one) => one !== plan && (one.config.services ?? one.config.worker_idle_timeout) !== undefined,
  );
  return asleep.slice(0, MOST_WAKES).map(({ app }) => app);
}

/** Whether another service says that it uses this one. */
function isNeeded({ service }: ServicePlan, apps: readonly ServicePlan[]): boolean {
  return apps.some(
    ({ dependsOn, links }) => dependsOn.some((one) => one.service === service) || links.some(([to]) => to === service),
  );
}

/** What listens nowhere cannot be woken. */
function tellSleepless(
  { service, config, runsOnce: ends, worker }: ServicePlan,
  findings: Findings,
  needed: boolean,
): void {
  if (ends || config.services !== undefined) return;
  if (worker !== false && needed)
    findings.warn(
      `services.${service}.x-hibernaut.worker`,
      "Another service depends on it, and reaches no port of a worker. If it listens, say where with `expose`, in place of `worker`.",
    );
  const terms = worker === false ? "worker: true, autostop: suspend" : "autostop: suspend";
  const tip = `If it waits for jobs over a connection to another service, \`x-hibernaut: {${terms}}\` lets it sleep.`;
  if (config.worker_idle_timeout !== undefined)
    return findings.note(
      `services.${service}`,
      `A worker: it sleeps when nothing has passed through its connections to other services for ${config.worker_idle_timeout} s, and wakes with what comes over one.`,
    );
  const why =
    worker === false
      ? `Nothing here says where it listens. If its image does not either, nothing can wake it, and it stays awake. If it listens, add \`expose\`.${needed ? "" : ` ${tip}`}`
      : worker.of === undefined
        ? `A worker: it listens nowhere and stays awake. ${tip}`
        : `It runs the image of ${worker.of} with a command of its own, and no service needs it: it counts as a worker, which listens nowhere and stays awake. If it listens, add \`expose\`. ${tip}`;
  findings.note(`services.${service}`, why);
}

/** Others wait for its end, so it does not sleep. */
function runsOnce(plan: ServicePlan): ServicePlan {
  const { services: _services, checks: _checks, ...config } = plan.config;
  return { ...plan, config: { ...config, restart: { policy: "no" } }, runsOnce: true };
}

/** `links: ["db:database"]` gives the linked service another name. */
function giveAliases(plans: ReadonlyMap<string, ServicePlan>, plan: ServicePlan, findings: Findings): void {
  for (const [service, alias] of plan.links) {
    const linked = plans.get(service);
    if (linked === undefined) findings.error(`services.${plan.service}.links`, `There is no service ${service}.`);
    else if (!linked.aliases.includes(alias) && alias !== linked.app) linked.aliases.push(alias);
  }
}

function inOrder(plans: ReadonlyMap<string, ServicePlan>, project: Project, findings: Findings): ServicePlan[] {
  const done = new Set<string>();
  const result: ServicePlan[] = [];
  const visit = (plan: ServicePlan, path: readonly string[]): void => {
    if (done.has(plan.service)) return;
    if (path.includes(plan.service)) {
      findings.error(
        `services.${plan.service}.depends_on`,
        `The services wait for each other: ${[...path, plan.service].join(", ")}.`,
      );
      return;
    }
    for (const dependency of plan.dependsOn) {
      const other = plans.get(dependency.service);
      if (other !== undefined) visit(other, [...path, plan.service]);
      else missing(plan, dependency, project, findings);
    }
    done.add(plan.service);
    result.push(plan);
  };
  for (const plan of plans.values()) visit(plan, []);
  return result;
}

function missing(
  { service }: ServicePlan,
  { service: name, required }: Dependency,
  { inactive }: Project,
  findings: Findings,
): void {
  if (!required) return;
  const why = inactive.includes(name) ? "is part of a profile that is not active. Add --profile" : "does not exist";
  findings.error(`services.${service}.depends_on`, `The service ${name} ${why}.`);
}
