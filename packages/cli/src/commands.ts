/** All commands. */

import type { Command, Noun } from "./command.ts";
import { apps } from "./commands/apps.ts";
import { audit } from "./commands/audit.ts";
import { backup } from "./commands/backup.ts";
import { certs } from "./commands/certs.ts";
import { cluster } from "./commands/cluster.ts";
import { completionCommands } from "./commands/completion.ts";
import { compose, composeCommands } from "./commands/compose.ts";
import { config } from "./commands/config.ts";
import { deployCommands } from "./commands/deploy.ts";
import { doctor } from "./commands/doctor.ts";
import { drainCommands } from "./commands/drain.ts";
import { events } from "./commands/events.ts";
import { fly } from "./commands/fly.ts";
import { hostnames } from "./commands/hostnames.ts";
import { hosts } from "./commands/hosts.ts";
import { images } from "./commands/images.ts";
import { launch } from "./commands/launch.ts";
import { logs } from "./commands/logs.ts";
import { machine } from "./commands/machine.ts";
import { mcp } from "./commands/mcp.ts";
import { open } from "./commands/open.ts";
import { previews } from "./commands/previews.ts";
import { proxy } from "./commands/proxy.ts";
import { overviewCommands } from "./commands/ps.ts";
import { registry } from "./commands/registry.ts";
import { sandbox } from "./commands/sandbox.ts";
import { scale } from "./commands/scale.ts";
import { secrets } from "./commands/secrets.ts";
import { serve } from "./commands/serve.ts";
import { templates } from "./commands/templates.ts";
import { tokens } from "./commands/tokens.ts";
import { top } from "./commands/top.ts";
import { uninstall } from "./commands/uninstall.ts";
import { usage } from "./commands/usage.ts";
import { volumes } from "./commands/volumes.ts";
import { webhooks } from "./commands/webhooks.ts";

const platform: Noun = {
  name: "",
  summary: "",
  commands: [
    serve,
    proxy,
    doctor,
    ...drainCommands,
    launch,
    ...overviewCommands,
    top,
    ...deployCommands,
    logs,
    events,
    open,
    mcp,
    usage,
    audit,
    uninstall,
    ...completionCommands(() => NOUNS),
    ...shortcuts(),
    ...composeCommands,
  ],
};

/** Short forms, without the noun, of the commands about machines that people type most. */
function shortcuts(): Command[] {
  const names = ["start", "stop", "suspend", "restart", "destroy", "exec", "console", "cp"];
  return machine.commands
    .filter(({ name }) => names.includes(name))
    .map((command) => ({
      ...command,
      aliases: [],
      hidden: true,
      examples: command.examples.map((example) => example.replace("hibernaut machine ", "hibernaut ")),
    }));
}

/** In the order in which help shows them. */
export const NOUNS: readonly Noun[] = [
  platform,
  apps,
  previews,
  compose,
  machine,
  scale,
  config,
  hostnames,
  certs,
  secrets,
  volumes,
  templates,
  sandbox,
  fly,
  images,
  registry,
  tokens,
  webhooks,
  backup,
  cluster,
  hosts,
];
