/** `hibernaut uninstall`: takes the platform off this host. */
import { linkFolder, removeLinks } from "../../bin/links.js";
import { command } from "../command.ts";
import { agree, YES } from "../confirming.ts";

/** For a platform that is stopped; the software itself is a folder that is deleted by hand. */
export const uninstall = command<{ data?: boolean; yes?: boolean; keepLink?: boolean }>({
  name: "uninstall",
  summary: "Remove the platform's network and guests from this host",
  description:
    "Ends the machines that still run and removes taps, bridge and firewall rules. The platform itself must be stopped. Apps, images and suspended machines stay in the data folder, and the next start of the platform picks them up, unless --data deletes the folder: that is asked first, and needs --yes where there is no terminal.",
  options: [
    { flags: "--data", description: "delete the data folder, too, with every app, machine, volume and secret" },
    { flags: "--keep-link", description: "leave `hibernaut` on the PATH, for another platform on this host" },
    YES,
  ],
  examples: ["hibernaut uninstall", "hibernaut uninstall --data", "hibernaut uninstall --data --yes"],
  async run(_context, _args, { data = false, yes = false, keepLink = false }) {
    const [platform, { readSettings }] = await Promise.all([
      import("@hibernaut/platform/uninstall.ts"),
      import("@hibernaut/platform/settings.ts"),
    ]);
    const { dataDir } = readSettings(process.env);
    const warning = data ? await platform.describeData(dataDir) : undefined;
    if (warning !== undefined) await agree(warning, { yes, what: "deleted" });
    const done = await platform.uninstall({ dataDir, data });
    const links = keepLink ? [] : removeLinks(linkFolder(process.env));
    const kept = done.data ? `${dataDir} is deleted.` : `${dataDir} is left as it is.`;
    const unlinked =
      links.length === 0
        ? ""
        : ` No longer on the PATH: ${links.join(", ")}; \`npm run setup -- --link\` brings them back.`;
    return {
      document: { guests_ended: done.guests, data_deleted: done.data, data_dir: dataDir, links_removed: links },
      text: `Nothing of this platform is left in this host's network. Machines that were ended: ${done.guests}. ${kept}${unlinked}`,
    };
  },
});
