/** All commands there are. */

import type { Noun } from "./command.ts";
import { apps } from "./commands/apps.ts";
import { doctor } from "./commands/doctor.ts";
import { hostnames } from "./commands/hostnames.ts";
import { machine } from "./commands/machine.ts";
import { proxy } from "./commands/proxy.ts";
import { serve } from "./commands/serve.ts";
import { tokens } from "./commands/tokens.ts";

/** The commands about this host, at the top. */
const platform: Noun = { name: "", summary: "", commands: [serve, proxy, doctor] };

/** In the order in which help shows them. */
export const NOUNS: readonly Noun[] = [platform, apps, machine, hostnames, tokens];
