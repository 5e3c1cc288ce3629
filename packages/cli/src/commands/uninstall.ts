/** `hibernaut uninstall`: removes the platform from this host. */
import { linkFolder, removeLinks } from "../../bin/links.js";
import { command } from "../command.ts";
import { agree, YES } from "../confirming.ts";

/** Needs the platform to be stopped. The software itself is a directory that you delete yourself. */
export const uninstall = command({
  name: "uninstall",
  summary: "Remove the platform's network and guests from this host",
  description:
    "Ends machines that are still running and removes taps, the bridge and firewall rules. Stop the platform first. Apps, images and suspended machines stay in the data directory, and the next start of the platform finds them there. With --data the directory is deleted too: the command asks first, and needs --yes without a terminal. A mount point is emptied and stays.",
  options: [
    { flags: "--data", description: "also delete the data directory with every app, machine, volume and secret" },
    { flags: "--keep-link", description: "keep `hibernaut` on the PATH, for another platform on this host" },
    YES,
  ],
  examples: ["hibernaut uninstall", "hibernaut uninstall --data", "hibernaut uninstall --data --yes"],
  async run(_context, _args, { data = false, yes = false, keepLink = false }) {
    const [platform, { readSettings }] = await Promise.all([
      import("@hibernaut/platform/uninstall.ts"),
      import("@hibernaut/settings"),
    ]);
    const { dataDir } = readSettings(process.env);
    const warning = data ? await platform.describeData(dataDir) : undefined;
    if (warning !== undefined) await agree(warning, { yes, what: "deleted" });
    const done = await platform.uninstall({ dataDir, data });
    const links = keepLink ? [] : removeLinks(linkFolder(process.env));
    const deleted =
      done.stays === null ? `Deleted ${dataDir}.` : `Emptied ${dataDir}, which stays because ${done.stays}.`;
    const kept = done.data ? deleted : `Left ${dataDir} as it is.`;
    const unlinked =
      links.length === 0
        ? ""
        : ` Removed from the PATH: ${links.join(", ")}; \`npm run setup -- --link\` restores them.`;
    return {
      document: {
        guests_ended: done.guests,
        data_deleted: done.data,
        data_dir: dataDir,
        data_dir_stays: done.stays,
        links_removed: links,
      },
      text: `Removed the platform's network from this host. Machines ended: ${done.guests}. ${kept}${unlinked}`,
    };
  },
});
