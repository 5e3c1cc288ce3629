/** The app file that `hibernaut launch` writes, and what it says afterwards. Pure. */
import type { Plan } from "./plan.ts";

/** A commented `hibernaut.toml`. It is valid without a single warning. */
export function launchText(plan: Plan): string {
  const { app, port, portReason, setPort } = plan;
  return `# What Hibernaut knows about this app. Every key is explained in docs/app-file.md.
# After a change: hibernaut config validate, then hibernaut deploy

app = ${quoted(app)}

[build]
${imageLines(plan)}

[env]
  # Variables of the app. Passwords do not belong here: hibernaut secrets set NAME=value
${setPort ? `  PORT = "${port}"` : '  # LOG_LEVEL = "info"'}

[http_service]
  # Where the app listens inside its machine: on 0.0.0.0, not on localhost only. The port ${portReason}.
  internal_port = ${port}
  # What becomes of a machine without requests. "suspend": written to disk, wakes where it stood, in
  # milliseconds. "stop": ended, starts anew. "off": it keeps running.
  auto_stop_machines = "suspend"
  # A request wakes it.
  auto_start_machines = true
  # Of the app's machines so many never sleep.
  min_machines_running = 0
  # Without a request for so long a machine counts as idle.
  idle_timeout = "5m"

  [http_service.concurrency]
    # At the soft limit another machine is woken beside this one; at the hard limit requests wait.
    type = "requests"
    soft_limit = 20
    hard_limit = 100

# Restart the app when it ends with a failure.
[[restart]]
  policy = "on-failure"
  retries = 10

[[vm]]
  # A suspend writes all of it to disk, so less memory sleeps and wakes faster.
  memory = "256mb"
  cpus = 1
`;
}

function imageLines({ image }: Plan): string {
  if (image === undefined)
    return `  # Nothing is built here: name the image once you have one, or say it with each deploy: --image.
  # image = "docker-archive:/srv/app.tar"`;
  return `  # A reference in a registry, or docker-archive:, oci-archive: or oci: with an absolute path on the server.
  image = ${quoted(image)}`;
}

/** What is to be done next, one step a line. */
export function nextSteps(plan: Plan): string {
  const archive = `/srv/${plan.app}.tar`;
  const steps =
    plan.image === undefined
      ? [...buildSteps(plan, archive), `hibernaut deploy --image docker-archive:${archive}`]
      : ["hibernaut deploy"];
  return ["Next:", ...steps.map((step) => `  ${step}`)].join("\n");
}

function buildSteps({ kind, app }: Plan, archive: string): string[] {
  const save = `docker save ${app} -o ${archive}`;
  if (kind === "rootfs") return [`tar -c . | docker import - ${app} && ${save}`];
  const build = `docker build -t ${app} . && ${save}`;
  return kind === "dockerfile" ? [build] : ["write a Dockerfile for the app", build];
}

/** JSON's escapes are TOML's. */
function quoted(text: string): string {
  return JSON.stringify(text);
}
