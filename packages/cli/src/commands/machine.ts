/** `hibernaut machine` */
import type { Noun } from "../command.ts";
import { actCommands } from "./machine-act.ts";
import { copy } from "./machine-copy.ts";
import { egress } from "./machine-egress.ts";
import { execCommands } from "./machine-exec.ts";
import { fork } from "./machine-fork.ts";
import { forward } from "./machine-forward.ts";
import { lease } from "./machine-lease.ts";
import { makeCommands } from "./machine-make.ts";
import { metadata } from "./machine-metadata.ts";
import { move } from "./machine-move.ts";
import { ps } from "./machine-ps.ts";
import { restore } from "./machine-restore.ts";
import { showCommands } from "./machine-show.ts";
import { signal } from "./machine-signal.ts";
import { whyCommands } from "./machine-why.ts";

export const machine: Noun = {
  name: "machine",
  aliases: ["machines", "m"],
  summary: "Create, run, suspend, resume and destroy machines",
  commands: [
    ...makeCommands,
    ...showCommands,
    ...whyCommands,
    ...actCommands,
    signal,
    ps,
    ...execCommands,
    fork,
    restore,
    egress,
    copy,
    forward,
    move,
  ],
  nouns: [lease, metadata],
};
