/** Manual pages, made from the definitions of the commands: `hibernaut(1)`, and one for each noun. */
import { APP, type Argument, type Command, JSON_OUTPUT, type Noun, type Option } from "./command.ts";

/** One page: `hibernaut-machine.1`, and its text for `man`. */
interface ManualPage {
  file: string;
  text: string;
}

const INTRODUCTION =
  "Hibernaut runs apps as virtual machines that suspend to disk when nobody uses them, and resume where they stopped at the next request.";

const CONNECTION =
  "The platform is found by HIBERNAUT_API_URL and HIBERNAUT_API_TOKEN, or by the file that it wrote when it started. HIBERNAUT_APP names the app. Long output goes through HIBERNAUT_PAGER, PAGER or less. Times are in the zone of TZ.";

const EXIT_CODES: readonly (readonly [code: string, meaning: string])[] = [
  ["0", "success"],
  ["1", "failure"],
  ["2", "wrong command or argument"],
  ["124", "timed out"],
  ["130", "interrupted"],
];

/** The pages of all nouns; `version` is shown at the foot of each. */
export function manualPages(nouns: readonly Noun[], version: string): ManualPage[] {
  const [platform, ...named] = nouns;
  if (platform === undefined) return [];
  const page = (name: string, summary: string, body: string[]): ManualPage => ({
    file: `${name}.1`,
    text: `${[header(name, version), section("NAME"), `${name} \\- ${plain(summary)}`, ...body].join("\n")}\n`,
  });
  const others = named.map(({ name }) => `.BR hibernaut-${name} (1)`);
  return [
    page("hibernaut", "machines that sleep", [
      section("SYNOPSIS"),
      ".B hibernaut",
      "[\\fInoun\\fR] \\fIcommand\\fR [\\fIoption\\fR...] [\\fIargument\\fR...]",
      section("DESCRIPTION"),
      plain(INTRODUCTION),
      section("COMMANDS"),
      ...commandTexts(platform, "hibernaut"),
      section("ENVIRONMENT"),
      plain(CONNECTION),
      section("EXIT STATUS"),
      ...EXIT_CODES.flatMap(([code, meaning]) => [".TP", `.B ${code}`, meaning]),
      section("SEE ALSO"),
      others.join(",\n"),
    ]),
    ...named.map((noun) =>
      page(`hibernaut-${noun.name}`, noun.summary, [
        section("SYNOPSIS"),
        `.B hibernaut ${noun.name}`,
        "\\fIcommand\\fR [\\fIoption\\fR...] [\\fIargument\\fR...]",
        section("COMMANDS"),
        ...commandTexts(noun, `hibernaut ${noun.name}`),
        section("SEE ALSO"),
        ".BR hibernaut (1)",
      ]),
    ),
  ];
}

function header(name: string, version: string): string {
  return `.TH ${name.toUpperCase().replaceAll("-", "\\-")} 1 "" "Hibernaut ${version}" "Hibernaut"`;
}

function section(name: string): string {
  return `.SH ${name}`;
}

/** The commands of a noun and of the nouns below it. */
function commandTexts({ commands, nouns = [] }: Noun, path: string): string[] {
  const shown = commands.filter(({ hidden }) => hidden !== true);
  return [
    ...shown.flatMap((command) => commandText(command, path)),
    ...nouns.flatMap((noun) => commandTexts(noun, `${path} ${noun.name}`)),
  ];
}

function commandText(command: Command, path: string): string[] {
  const { name, aliases = [], arguments: words = [], options = [], summary, description, ofApp = false } = command;
  const also = aliases.length === 0 ? "" : ` Also: ${aliases.join(", ")}.`;
  const shown = [...options.filter(({ hidden }) => hidden !== true), ...(ofApp ? [APP] : []), JSON_OUTPUT];
  return [
    `.SS "${plain([path, name, ...words.map(({ usage }) => usage)].join(" "))}"`,
    plain(`${summary}.${description === undefined ? "" : ` ${description}`}${also}`),
    ...words.flatMap(argumentText),
    ...shown.flatMap(optionText),
    ".PP",
    ".nf",
    ...command.examples.map((example) => `    ${plain(example)}`),
    ".fi",
  ];
}

function argumentText({ usage, description }: Argument): string[] {
  return [".TP", `.I "${plain(usage)}"`, plain(description)];
}

function optionText({ flags, description, choices }: Option): string[] {
  const among = choices === undefined ? "" : ` (${choices.join(", ")})`;
  return [".TP", `.B "${plain(flags)}"`, plain(`${description}${among}`)];
}

/** Text as it is: nothing in it is a request or an escape of roff, and a hyphen can be copied. */
function plain(text: string): string {
  return text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replaceAll('"', "\\(dq")
    .replace(/^([.'])/gm, "\\&$1");
}
