/** `hibernaut machine signal`: sends a signal to an app. */
import { command } from "../command.ts";
import { MACHINE } from "../which-machine.ts";

/** The command. */
export const signal = command({
  name: "signal",
  summary: "Send a signal to the app of a running machine",
  description:
    "The first process of the app gets the signal. If it ends the app, the machine's restart policy decides what follows; `hibernaut machine stop` stops the machine.",
  arguments: [
    { ...MACHINE, usage: "<machine>" },
    { usage: "<signal>", description: "such as SIGUSR1, or HUP" },
  ],
  ofApp: true,
  examples: ["hibernaut machine signal 3f9c01ab22de41 SIGHUP --app shop", "hibernaut machine signal web-1 usr1"],
  async run(context, [id = "", word = ""]) {
    const name = fullName(word);
    await (await context.client()).signalMachine(context.app, id, name);
    return { document: { machine_id: id, signal: name }, text: `Sent ${name} to the app of machine ${id}.` };
  },
});

/** `usr1` and `SIGUSR1` are the same, as for kill(1). */
export function fullName(word: string): string {
  const name = word.toUpperCase();
  return name.startsWith("SIG") ? name : `SIG${name}`;
}
