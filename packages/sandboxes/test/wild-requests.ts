/** Requests to the port of sandboxes that nearly fit, made from what its routes and services accept. */
import type { Random } from "../../api/test/random.ts";
import { type Schema, wildValue } from "../../api/test/wild-values.ts";
import { DOMAIN, enveloped, methods, type Port, plainRoutes } from "./port.ts";
import type { Tenant } from "./tenant.ts";
import { PATHS, unsettled, type WildRequest } from "./wild-breaks.ts";
import { schemaOf } from "./wild-messages.ts";

/** Parts of paths: some lead somewhere else if anyone takes them for more than a name. */
const PARTS = [
  "%2f",
  "..",
  "%2e%2e",
  "%00",
  "%",
  "%zz",
  "%C3%28",
  "a".repeat(120),
  "a".repeat(3000),
  ";a=b",
  "*",
  "%0d%0aX:y",
];
export function wildRequest(port: Port, [a, b]: readonly [Tenant, Tenant], random: Random): WildRequest {
  const of = random.oneIn(4) ? b : a;
  const made = random.oneIn(2)
    ? toControl(port, of, random)
    : random.oneIn(8)
      ? toPort(of, random)
      : toInside(of, random);
  return unsettled(made, random);
}

function toControl(port: Port, of: Tenant, random: Random): WildRequest {
  const route = random.pick([...port.schemas.keys()]);
  const { body, querystring = {} } = port.schemas.get(route) ?? {};
  const words: Record<string, readonly string[]> = {
    sandboxID: [of.running, of.paused, of.running, "0".repeat(14), "x"],
    templateID: [of.template, of.templateId, of.built, `${of.template}:v1`, "x:y", "-"],
    buildID: [of.build, "x"],
    volumeID: [of.volume, of.volume, of.freeVolume, "vol_0", "x"],
    hash: [of.hash, "0".repeat(64), "x"],
  };
  const path = route.replaceAll(/:(\w+)/g, (_all, name: string) =>
    random.pick(random.oneIn(6) ? PARTS : (words[name] ?? ["x"])),
  );
  const link = route === "PUT /uploads" ? of.link : "";
  const query = link !== "" && !random.oneIn(4) ? link : queryOf(querystring, random);
  const value = body === undefined ? {} : wildValue(body, {}, random);
  return {
    form: "control",
    route: path + query,
    headers: {
      ...{
        "x-api-key": of.key,
        "content-type": route.startsWith("PUT /volume") ? "application/octet-stream" : "application/json",
      },
      ...(route.includes("/volumecontent/") && !random.oneIn(6) && { authorization: `Bearer ${of.volumeToken}` }),
    },
    ...(!/^(GET|HEAD)/.test(route) && { body: JSON.stringify(tamed(value, of)) ?? "" }),
  };
}

/** Wild names lead nowhere, and a hundred forks only take long. */
function tamed(value: unknown, { template }: Tenant): unknown {
  if (typeof value !== "object" || value === null) return value;
  const { templateID, target, fromTemplate, count } = value as Record<string, unknown>;
  if (typeof templateID === "string" && templateID.length < 5) Object.assign(value, { templateID: template });
  if (typeof target === "string") Object.assign(value, { target: template });
  if (typeof fromTemplate === "string") Object.assign(value, { fromTemplate: template });
  if (typeof count === "number" && count <= 100) Object.assign(value, { count: Math.min(count, 2) });
  return value;
}

function queryOf({ properties = {} }: Schema, random: Random): string {
  const names = Object.keys(properties).filter(() => random.oneIn(2));
  const pairs = names.flatMap((name) => {
    const value = wildValue(properties[name] ?? {}, {}, random);
    const pair = `${name}=${encodeURIComponent(String(value).toWellFormed())}`;
    return random.oneIn(6) ? [pair, pair] : [pair];
  });
  return pairs.length === 0 ? "" : `?${pairs.join("&")}`;
}

const METHODS = methods();

function toInside(of: Tenant, random: Random): WildRequest {
  const token = random.oneIn(10) ? "x" : of.token;
  const id = random.oneIn(10) ? of.paused : of.running;
  const by = random.oneIn(2) ? { "e2b-sandbox-id": id } : { host: `49983-${id}.${DOMAIN}` };
  const headers = { ...by, "x-access-token": token };
  if (random.oneIn(3)) {
    const route = random.pick(plainRoutes());
    const path = random.pick(["/home/user/a", "a%00b", "..%2f..", "%F0%9F%A6%94", "", "a".repeat(5000)]);
    const query = random.oneIn(8) ? `?path=${path}&path=x&signature=x&signature_expiration=NaN` : `?path=${path}`;
    const value = { source_paths: ["/a"], destination: random.pick(["/b", "", 1, null]), username: "user" };
    const type = random.pick(["application/json", "application/octet-stream", "multipart/form-data; boundary=x"]);
    const form = '--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\ntext\r\n--x--\r\n';
    const body = type.startsWith("multipart") ? form : JSON.stringify(value);
    const isSent = route.startsWith("POST");
    return {
      form: "control",
      route: route + query,
      headers: { ...headers, "content-type": type },
      ...(isSent && { body }),
    };
  }
  const { path, kind, input } = random.pick(METHODS);
  const values = Array.from({ length: 1 + random.below(2) }, () => wildValue(schemaOf(input, of, random), {}, random));
  const isStream = kind !== "unary";
  return {
    form: "connect",
    route: `POST ${path}`,
    headers: { ...headers, "content-type": isStream ? "application/connect+json" : "application/json" },
    body: isStream ? enveloped(...values) : JSON.stringify(values[0]),
    endless: kind === "server_streaming",
  };
}

function toPort(of: Tenant, random: Random): WildRequest {
  const port = random.pick(["0", "80", "8000", "65535", "65536", "x"]);
  const id = random.oneIn(3) ? "0".repeat(14) : of.running;
  const by = random.oneIn(2) ? { "e2b-sandbox-id": id, "e2b-sandbox-port": port } : { host: `${port}-${id}.${DOMAIN}` };
  const method = random.pick(["GET", "POST", "DELETE", "PURGE", "OPTIONS"]);
  return {
    form: "port",
    route: `${method} ${random.pick(PATHS.slice(0, 4))}`,
    headers: { ...by, "e2b-traffic-access-token": of.traffic },
  };
}
