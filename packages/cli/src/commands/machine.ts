/** `hibernaut machine` */
import type { Noun } from "../command.ts";
import { actCommands } from "./machine-act.ts";
import { copyCommands } from "./machine-copy.ts";
import { execCommands } from "./machine-exec.ts";
import { forwardCommands } from "./machine-forward.ts";
import { makeCommands } from "./machine-make.ts";
import { moveCommands } from "./machine-move.ts";
import { showCommands } from "./machine-show.ts";
import { whyCommands } from "./machine-why.ts";

/** The commands about machines. */
export const machine: Noun = {
  name: "machine",
  aliases: ["machines"],
  summary: "Create, run, suspend, resume and destroy machines",
  commands: [
    ...makeCommands,
    ...showCommands,
    ...whyCommands,
    ...actCommands,
    ...execCommands,
    ...copyCommands,
    ...forwardCommands,
    ...moveCommands,
  ],
};
