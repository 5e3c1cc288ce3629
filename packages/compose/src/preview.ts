/** A project as a preview of itself: for a while, with names, data and a network of its own. Pure. */
import { MOST_ALIASES } from "@hibernaut/domain/app-network";
import { previewAppName } from "@hibernaut/domain/preview";
import { messageOf } from "@hibernaut/lib/text";
import type { Findings } from "./findings.ts";
import type { ProjectPlan } from "./plan.ts";
import type { Ports } from "./ports.ts";
import type { ServicePlan } from "./service.ts";
import { type SleepTerms, servicesOf } from "./sleep.ts";

/**
 * Returns the plan of the preview. Each of its apps is a preview of the app of the same service, sleeps and wakes, and takes no port
 * that only one app can have. After an error among the findings, it is not to be carried out.
 */
export function asPreview(plan: ProjectPlan, name: string, findings: Findings): ProjectPlan {
  try {
    const appOf = (app: string) => previewAppName(name, app);
    const apps = plan.apps.map((service) => previewOf(service, appOf, findings));
    return { name: previewAppName(name, plan.name), apps, preview: { name, of: plan.name } };
  } catch (error) {
    findings.error("", messageOf(error));
    return plan;
  }
}

function previewOf(plan: ServicePlan, appOf: (app: string) => string, findings: Findings): ServicePlan {
  const { app, aliases, config } = plan;
  for (const { published } of plan.ports.tcp)
    findings.warn(
      `services.${plan.service}.ports`,
      `TCP port ${published} belongs to ${app}. In the preview, only its own services reach the port.`,
    );
  const ports = withoutNumbers(plan.ports);
  const sleep: SleepTerms = { ...plan.sleep, autostop: plan.sleep.autostop === "stop" ? "stop" : "suspend" };
  return {
    ...plan,
    ...{ app: appOf(app), previewOf: app, ports, sleep },
    // What knows another service by the name of its app finds that of the preview.
    aliases: aliases.length < MOST_ALIASES ? [...aliases, app] : aliases,
    wakes: plan.wakes.map(appOf),
    config: config.services === undefined ? config : { ...config, services: servicesOf(ports, sleep) },
  };
}

/** The host's numbers belong to production. */
function withoutNumbers({ tcp, inside, ...ports }: Ports): Ports {
  return { ...ports, tcp: [], inside: [...new Set([...tcp.map(({ internal }) => internal), ...inside])] };
}
