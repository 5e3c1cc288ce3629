/** Secrets. Values are set, and never read. */
import { Type } from "typebox";
import { type Ask, path } from "../ask.ts";
import { Refusal } from "../failure.ts";
import { secretView } from "../view/others.ts";
import type { PlatformSecret } from "../view/platform.ts";
import type { Routes } from "./table.ts";

const SECRETS = "/apps/:app_name/secrets";
const SECRET = `${SECRETS}/:secret_name`;

const ValueBody = Type.Object({ value: Type.String() });
/** How many one request changes. Each that is deleted is a request to the platform. */
const MOST_VALUES = 200;

/** Null deletes. */
const ValuesBody = Type.Object({
  values: Type.Record(Type.String(), Type.Union([Type.String(), Type.Null()]), { maxProperties: MOST_VALUES }),
});

/** Versions of secrets only ever grow: the time of the change, in milliseconds, does. */
const versionNow = () => Date.now();

async function secretsOf(ask: Ask, app: string): Promise<PlatformSecret[]> {
  return ((await ask("GET", path`/v1/apps/${app}/secrets`)) as { secrets: PlatformSecret[] }).secrets;
}

async function secretOf(ask: Ask, app: string, name: string): Promise<PlatformSecret> {
  const secret = (await secretsOf(ask, app)).find((one) => one.name === name);
  if (secret === undefined) throw new Refusal(404, `secret not found: ${name.slice(0, 100)}`);
  return secret;
}

export function secretRoutes(route: Routes): void {
  route("GET", SECRETS, {}, async ({ ask, of }) => ({
    secrets: (await secretsOf(ask, of("app_name"))).map(secretView),
  }));

  route("POST", SECRETS, { body: ValuesBody, keepsNulls: true }, async ({ ask, of, body }) => {
    const app = of("app_name");
    const entries = Object.entries(body.values);
    const set = entries.filter(([, value]) => value !== null);
    if (set.length > 0) await ask("POST", path`/v1/apps/${app}/secrets`, { secrets: Object.fromEntries(set) });
    for (const [name, value] of entries) if (value === null) await ask("DELETE", path`/v1/apps/${app}/secrets/${name}`);
    return { secrets: (await secretsOf(ask, app)).map(secretView), version: versionNow() };
  });

  route("GET", SECRET, {}, async ({ ask, of }) => secretView(await secretOf(ask, of("app_name"), of("secret_name"))));

  route("POST", SECRET, { body: ValueBody }, async ({ ask, of, body }) => {
    const [app, name] = [of("app_name"), of("secret_name")];
    await ask("POST", path`/v1/apps/${app}/secrets`, { secrets: { [name]: body.value } });
    return { ...secretView(await secretOf(ask, app, name)), version: versionNow() };
  });

  route("DELETE", SECRET, {}, async ({ ask, of }) => {
    await ask("DELETE", path`/v1/apps/${of("app_name")}/secrets/${of("secret_name")}`);
    return { version: versionNow() };
  });
}
