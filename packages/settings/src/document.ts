/** The tables of docs/settings.md, made from the schemas. `npm run build` writes them. */
import { infoOf, type SettingInfo } from "./forms.ts";
import { SETTING_GROUPS } from "./settings.ts";

const BEGIN = "<!-- Generated from packages/settings/src/ by `npm run build`: edit the schemas instead. -->";
const END = "<!-- End of the generated part. -->";

/** Returns the document with current tables. Everything outside the two marks stays. Throws when they are missing. */
export function withSettingTables(document: string): string {
  const [start, end] = [document.indexOf(BEGIN), document.indexOf(END)];
  if (start === -1 || end < start) throw new Error(`docs/settings.md has lost the lines ${BEGIN} and ${END}`);
  return `${document.slice(0, start + BEGIN.length)}\n\n${tables()}\n${document.slice(end)}`;
}

function tables(): string {
  return Object.entries(SETTING_GROUPS)
    .map(([title, group]) => `## ${title}\n\n${table(Object.values(group).map(infoOf))}`)
    .join("\n");
}

function table(settings: SettingInfo[]): string {
  const rows = settings.map((setting) => `| \`${setting.env}\` | ${shownDefault(setting)} | ${text(setting)} |\n`);
  return `| Name | Default | |\n|---|---|---|\n${rows.join("")}`;
}

function text({ description, accepts, form, formerly }: SettingInfo): string {
  const limits = accepts === "" || form === "path" || form === "listen" ? "" : ` Accepts ${accepts}.`;
  const former = formerly === undefined ? "" : ` Formerly \`${formerly}\`.`;
  return `${description}${limits}${former}`.replaceAll("|", "\\|");
}

function shownDefault({ defaultText, fallback }: SettingInfo): string {
  return fallback !== undefined || defaultText === "none" ? defaultText : `\`${defaultText}\``;
}
