/** The app file that `hibernaut launch` writes, and the next steps that it prints. Pure. */
import type { AppPlan } from "./plan.ts";

/** A commented `hibernaut.toml`, valid without warnings. */
export function launchText(plan: AppPlan): string {
  const { app, port, portReason, setPort, memoryMb, cpus } = plan;
  return `# How Hibernaut runs this app. docs/app-file.md explains every key.
# After a change: hibernaut config validate, then hibernaut deploy

app = ${quoted(app)}

[build]
${imageLines(plan)}

[env]
  # Environment variables of the app. Keep passwords out: hibernaut secrets set NAME=value
${setPort && (portReason !== undefined || !setsPort(plan)) ? `  PORT = "${port}"` : '  # LOG_LEVEL = "info"'}

${portLines(plan)}
  # What to do with an idle machine. "suspend": save it to disk; it resumes where it left off, in milliseconds.
  # "stop": shut it down; it starts from scratch. "off": keep it running.
  auto_stop_machines = "suspend"
  # Requests wake the machine.
  auto_start_machines = true
  # Keep at least this many machines running.
  min_machines_running = 0
  # A machine is idle after this time without a request.
  idle_timeout = "5m"

  [http_service.concurrency]
    # At the soft limit, another machine is woken; at the hard limit, requests wait.
    type = "requests"
    soft_limit = 20
    hard_limit = 100

# Restart the app when it fails.
[[restart]]
  policy = "on-failure"
  retries = 10

[[vm]]
  # A suspend writes all memory to disk: with less memory, the machine sleeps and wakes faster.
  memory = "${memoryMb}mb"
  cpus = ${cpus}
`;
}

/** A port that nothing names is left out: a deploy adds it below the header of the table. */
function portLines({ port, portReason, setPort }: AppPlan): string {
  if (portReason === undefined)
    return `# internal_port is the port that the app listens on inside its machine: on 0.0.0.0, not only on localhost. Nothing in
# this directory names one, so the first deploy adds that on which the app really listens. Until then, ${setPort ? `PORT is ${port}` : `it is ${port}`}.
[http_service]`;
  return `[http_service]
  # The port that the app listens on inside its machine: on 0.0.0.0, not only on localhost. The port ${portReason}.
  internal_port = ${port}`;
}

/** Whether the image tells the app its port, so that the file, in which a deploy may add another, need not. */
function setsPort({ build }: AppPlan): boolean {
  return build !== undefined && build.builder !== "dockerfile";
}

function imageLines({ image, build }: AppPlan): string {
  if (image !== undefined)
    return `  # An image in a registry, or docker-archive:, oci-archive: or oci: with an absolute path.
  image = ${quoted(image)}`;
  if (build !== undefined)
    return `  # Each deploy builds the image from this directory, because it has ${build.because}. docs/build.md explains how.
  # Files that the image should not have: list them in .dockerignore.
  builder = ${quoted(build.builder)}`;
  return `  # Nothing here says how to build an image. Add a start script or a Dockerfile, or name a finished image here or with
  # each deploy: --image.
  # image = "docker-archive:/srv/app.tar"`;
}

/** What to do next, one step per line. */
export function nextSteps(plan: AppPlan): string {
  const archive = `${plan.app}.tar`;
  const ready = plan.image !== undefined || plan.build !== undefined;
  const steps = ready ? ["hibernaut deploy"] : buildSteps(plan, archive);
  return ["Next:", ...steps.map((step) => `  ${step}`)].join("\n");
}

function buildSteps({ kind, app }: AppPlan, archive: string): string[] {
  if (kind === "rootfs")
    return [
      `tar -c . | docker import - ${app} && docker save ${app} -o ${archive}`,
      `hibernaut deploy --image docker-archive:${archive}`,
    ];
  return ["add a start script to package.json, or a Dockerfile: see docs/build.md", "hibernaut deploy"];
}

/** JSON's escapes are TOML's. */
function quoted(text: string): string {
  return JSON.stringify(text);
}
