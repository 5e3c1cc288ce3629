/** The double's methods, by resource. */
import type { Resources } from "../../src/machines/open.ts";
import type { FakeMachineService } from "./fake-service.ts";

export function fakeResources(fake: FakeMachineService): Omit<Resources, "recover" | "close"> {
  return {
    apps: {
      create: fake.createApp.bind(fake),
      list: () => fake.listApps(),
      get: fake.getApp.bind(fake),
      delete: fake.deleteApp.bind(fake),
    },
    machines: Object.assign(fake, { all: () => fake.listApps().flatMap(({ name }) => fake.list(name)) }),
    releases: {
      list: fake.listReleases.bind(fake),
      begin: fake.beginRelease.bind(fake),
      end: fake.endRelease.bind(fake),
    },
    hostnames: {
      list: (app: string) => (fake.getApp(app), [...fake.names].filter(([, own]) => own === app).map(([name]) => name)),
      add: fake.addHostname.bind(fake),
      remove: fake.removeHostname.bind(fake),
    },
    secrets: {
      list: fake.listSecrets.bind(fake),
      set: fake.setSecrets.bind(fake),
      unset: fake.unsetSecret.bind(fake),
    },
    logs: {
      read: (app: string, { machines, signal, ...query }: Parameters<Resources["logs"]["read"]>[1]) =>
        fake.logs(app, machines, query, signal),
    },
    commands: { run: fake.run.bind(fake), count: fake.commands.bind(fake) },
    guestApi: Object.assign(fake, { subscribe: fake.listen.bind(fake) }),
  } as unknown as Resources;
}
