/** What `hibernaut compose plan` says of when services sleep. */
import type { ServicePlan } from "@hibernaut/compose";
import { expect, test } from "vitest";
import { planText } from "../src/compose/show.ts";

const service = (name: string, more: Partial<ServicePlan> = {}): ServicePlan => ({
  ...{ service: name, app: `cafe-${name}`, aliases: [], image: "i", build: undefined, secrets: [], dependsOn: [] },
  ...{ wakes: [], links: [], ports: { tcp: [], inside: [] }, runsOnce: false, worker: false },
  sleep: { autostop: "suspend", said: false, saidIdle: false, idleTimeout: 300 },
  config: {},
  ...more,
});

test("says after how long each service sleeps, and of a worker, that it sleeps at all", () => {
  const services = [{ internal_port: 80 }];
  const apps = [
    service("web", { config: { services } }),
    service("worker", { worker: { of: undefined }, config: { worker_idle_timeout: 10 } }),
    service("poller", { worker: { of: undefined } }),
  ];
  const text = planText({ plan: { name: "cafe", apps }, findings: [] });
  expect(text).toMatch(/^web .* after 300s$/m);
  expect(text).toMatch(/^worker .* after 10s of silence$/m);
  expect(text).toMatch(/^poller .* never$/m);
});
