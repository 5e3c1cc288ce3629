/** `hibernaut machine egress`: where a machine may connect to. */
import type { EgressConfig } from "@hibernaut/client";
import { command } from "../command.ts";
import { UsageError } from "../failure.ts";
import { given } from "../option-values.ts";
import { MACHINE, machineOf } from "../which-machine.ts";

export const egress = command({
  name: "egress",
  summary: "Show or change where a machine may connect to",
  description:
    "Shows the rules, or replaces them with what the options say, at once and without a restart: open connections that the new rules do not allow end. What --allow names comes before what --deny names. Names, such as api.example.com and *.example.com, can be allowed only with --default deny.",
  arguments: [MACHINE],
  options: [
    {
      flags: "--default <policy>",
      description: "what holds for all that is not named (default: allow)",
      choices: ["allow", "deny"],
    },
    { flags: "--allow <where>", description: "address, network or name; may repeat", repeats: true },
    { flags: "--deny <where>", description: "address or network; may repeat", repeats: true },
    { flags: "--clear", description: "remove all rules" },
  ],
  ofApp: true,
  examples: [
    "hibernaut machine egress 3f9c01ab22de41 --app shop",
    "hibernaut machine egress web-1 --default deny --allow api.example.com --allow 192.0.2.0/24",
    "hibernaut machine egress web-1 --deny 10.0.0.0/8",
    "hibernaut machine egress web-1 --clear",
  ],
  async run(context, [word], { default: byDefault, allow, deny, clear = false }) {
    const client = await context.client();
    const { id, config } = await machineOf(context, word);
    const rules: EgressConfig = given({ default: byDefault, allow, deny });
    const isChange = Object.keys(rules).length > 0;
    if (isChange && clear) throw new UsageError("--clear removes all rules. Leave it out, or leave the others out.");
    const shown = (rulesNow: EgressConfig | undefined) => ({
      document: { machine_id: id, egress: rulesNow ?? null },
      text: rulesText(id, rulesNow),
    });
    if (!isChange && !clear) return shown(config.network?.egress);
    await client.setEgress(context.app, id, clear ? null : rules);
    return shown(clear ? undefined : rules);
  },
});

function rulesText(id: string, rules: EgressConfig | undefined): string {
  if (rules === undefined) return `Machine ${id} may connect wherever the network lets machines.`;
  const { default: byDefault = "allow", allow = [], deny = [] } = rules;
  const lines = [
    ...allow.map((where) => `  allow  ${where}`),
    ...deny.map((where) => `  deny   ${where}`),
    `  ${byDefault === "allow" ? "allow " : "deny  "} all else`,
  ];
  return [`Machine ${id} may connect by these rules:`, ...lines].join("\n");
}
